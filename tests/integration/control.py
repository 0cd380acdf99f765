"""What tests do to a server through system_control: hold its DDL and let it go, move its clock, put faults in its way."""
ANY = "*"


def rules(session):
    return {(r.statement, r.keyspace_name, r.name): (r.delay, r.failure) for r in session.execute("SELECT * FROM system_control.ddl")}


def objects(session, keyspace):
    rows = session.execute("SELECT * FROM system_control.objects WHERE keyspace_name = %s", (keyspace,))
    return {(r.kind, r.name): r for r in rows}


def set_rule(session, delay, statement=ANY, keyspace=ANY, name=ANY, failure=None):
    session.execute("INSERT INTO system_control.ddl (statement, keyspace_name, name, delay) VALUES (%s, %s, %s, %s)", (statement, keyspace, name, delay))
    if failure is not None:
        session.execute("UPDATE system_control.ddl SET failure = %s WHERE statement = %s AND keyspace_name = %s AND name = %s", (failure, statement, keyspace, name))


def drop_rule(session, statement=ANY, keyspace=ANY, name=ANY):
    session.execute("DELETE FROM system_control.ddl WHERE statement = %s AND keyspace_name = %s AND name = %s", (statement, keyspace, name))


def release(session, keyspace=ANY, name=ANY, kind="table"):
    session.execute("UPDATE system_control.objects SET held = false WHERE keyspace_name = %s AND kind = %s AND name = %s", (keyspace, kind, name))


def release_all(session):
    release(session, kind=ANY)


def set_status(session, keyspace, name, status, kind="table"):
    session.execute("UPDATE system_control.objects SET status = %s WHERE keyspace_name = %s AND kind = %s AND name = %s", (status, keyspace, kind, name))


def set_clock(session, **settings):
    names = ", ".join(f"{name} = %s" for name in settings)
    session.execute(f"UPDATE system_control.clock SET {names} WHERE name = 'server'", tuple(settings.values()))


def read_clock(session):
    return session.execute("SELECT * FROM system_control.clock").one()


def set_fault(session, name, **columns):
    """A fault of these columns, and of no others that it may have had."""
    given = {c: v for c, v in columns.items() if v is not None}
    session.execute("DELETE FROM system_control.faults WHERE name = %s", (name,))
    session.execute(f"INSERT INTO system_control.faults (name, {', '.join(given)}) VALUES (%s{', %s' * len(given)})", (name, *given.values()))
