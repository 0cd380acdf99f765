"""A plain model of what CQL tables hold, in memory: cells with write times, deletions of every kind, time to live, statics, sets and maps, counters,
conditions. It knows nothing of how Tally stores anything.

Every write has a time of its own, so that no two are equal; which of equal ones wins is tested elsewhere. A clock of the test's is the only one.
"""
NEVER = float("inf")
NOTHING = -1
PLAIN = ("plain", "blob")  # kinds of columns whose value is one cell


class Cell:
    """The newest of what was written and deleted."""

    def __init__(self):
        self.ts, self.value, self.until = NOTHING, None, NEVER

    def write(self, ts, value, until=NEVER):
        if ts > self.ts:
            self.ts, self.value, self.until = ts, value, until

    def live(self, deleted, now):
        return self.ts > deleted and self.value is not None and self.until > now


class Column:
    """A column of a row: one cell, or the elements of a set or map, which are deleted as a whole when they are assigned."""

    def __init__(self, kind):
        self.kind, self.cell, self.elements, self.deleted = kind, Cell(), {}, NOTHING

    def assign(self, ts, value, until):
        if self.kind in PLAIN:
            self.cell.write(ts, value, until)
            return
        self.deleted = max(self.deleted, ts - 1)
        for key in value or ():
            self.element(ts, key, value[key] if self.kind == "map" else True, until)

    def element(self, ts, key, value, until):
        self.elements.setdefault(key, Cell()).write(ts, value, until)

    def delete(self, ts):
        self.cell.write(ts, None)
        self.deleted = max(self.deleted, ts)

    def live_elements(self, deleted, now):
        deleted = max(deleted, self.deleted)
        return {k: c.value for k, c in self.elements.items() if c.live(deleted, now)}

    def value(self, deleted, now):
        if self.kind in PLAIN:
            return self.cell.value if self.cell.live(deleted, now) else None
        live = self.live_elements(deleted, now)
        return (live if self.kind == "map" else set(live)) or None

    def written(self, deleted, now):
        """WRITETIME and TTL of a plain column."""
        if not self.cell.live(deleted, now):
            return None, None
        return self.cell.ts, None if self.cell.until == NEVER else self.cell.until - now


class Row:
    def __init__(self, kinds):
        self.columns, self.marker, self.deleted = {n: Column(k) for n, k in kinds.items()}, Cell(), NOTHING

    def values(self, deleted, now):
        deleted = max(deleted, self.deleted)
        return {n: c.value(deleted, now) for n, c in self.columns.items()}

    def there(self, deleted, now):
        return self.marker.live(max(deleted, self.deleted), now) or any(v is not None for v in self.values(deleted, now).values())


class Partition:
    def __init__(self, table):
        self.table, self.rows, self.deleted, self.ranges, self.static = table, {}, NOTHING, [], table.new_row(table.statics)

    def row(self, c):
        return self.rows.setdefault(c, self.table.new_row(self.table.regulars))

    def deleted_at(self, c):
        return max([self.deleted] + [ts for ts, low, high in self.ranges if low <= c < high])

    def live_rows(self, now):
        """c -> its values, in order."""
        return {c: r.values(self.deleted_at(c), now) for c, r in sorted(self.rows.items()) if r.there(self.deleted_at(c), now)}

    def element_now(self, c, name, key, now):
        """An element's value, write time and time to live; all None where there is none."""
        row = self.rows[c]
        column = row.columns[name]
        element, deleted = column.elements.get(key, Cell()), max(self.deleted_at(c), row.deleted, column.deleted)
        return (element.value, element.ts, None if element.until == NEVER else element.until - now) if element.live(deleted, now) else (None, None, None)

    def live_static(self, now):
        return self.static.values(self.deleted, now)

    def shown(self, now):
        """The rows of SELECT *: of a partition that has a static row alone, one without a clustering key."""
        static, rows = self.live_static(now), self.live_rows(now)
        if not rows and any(v is not None for v in static.values()):
            rows = {None: {n: None for n in self.table.regulars}}
        return [(c, {**values, **static}) for c, values in rows.items()]


class Table:
    """p int, c int, with regular and static columns: name -> plain, blob, set or map."""

    def __init__(self, regulars, statics):
        self.regulars, self.statics, self.partitions, self.now = regulars, statics, {}, 0
        self.default_ttl, self.dropped = 0, {}  # dropped: columns that came back, and the time up to which their values stay away

    def new_row(self, kinds):
        row = Row(kinds)
        for name in kinds.keys() & self.dropped.keys():
            row.columns[name].delete(self.dropped[name])
        return row

    def drop_and_add(self, ts, name):
        """The column goes, with every value that was written at ts or before, also those that come later; then it comes back."""
        self.dropped[name] = ts
        for part in self.partitions.values():
            for row in [part.static] if name in self.statics else part.rows.values():
                row.columns[name].delete(ts)

    def truncate(self):
        self.partitions = {}

    def partition(self, p):
        return self.partitions.setdefault(p, Partition(self))

    def until(self, ttl):
        """ttl: None where the statement has none."""
        ttl = self.default_ttl if ttl is None else ttl
        return self.now + ttl if ttl else NEVER

    def insert(self, ts, p, c, values, statics, ttl=None):
        part, until = self.partition(p), self.until(ttl)
        if c is not None:
            part.row(c).marker.write(ts, True, until)
            for n, v in values.items():
                part.row(c).columns[n].assign(ts, v, until)
        for n, v in statics.items():
            part.static.columns[n].assign(ts, v, until)

    def update(self, ts, p, c, changes, ttl=None):
        """changes: (column, what, key, value): assign, put (elements), remove (keys), delete."""
        for name, what, keys, value in changes:
            row = self.partition(p).static if name in self.statics else self.partition(p).row(c)
            column = row.columns[name]
            if what == "assign":
                column.assign(ts, value, self.until(ttl))
            elif what == "delete":
                column.delete(ts)
            for key in keys or ():
                column.element(ts, key, None if what == "remove" else (value[key] if column.kind == "map" else True), self.until(ttl) if what == "put" else NEVER)

    def delete_row(self, ts, p, c):
        row = self.partition(p).row(c)
        row.deleted = max(row.deleted, ts)

    def delete_range(self, ts, p, low, high):
        self.partition(p).ranges.append((ts, low, high))

    def delete_partition(self, ts, p):
        self.partition(p).deleted = max(self.partition(p).deleted, ts)

    def row_now(self, p, c):
        """Its values with the statics, or None."""
        return self.partition(p).live_rows(self.now).get(c)
