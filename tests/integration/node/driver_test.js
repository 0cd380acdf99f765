// Tally through the Node driver: node driver_test.js HOST PORT [strict]
// Prints "ok NAME" or "FAILED NAME: why" for every check and a line of totals; exits non-zero when a check failed.
'use strict';
const assert = require('assert');
const fs = require('fs');
const cassandra = require('cassandra-driver');
const { types } = cassandra;

const [host, port] = [process.argv[2], Number(process.argv[3])];
const strict = process.argv[4] === 'strict'; // what Amazon Keyspaces refuses is refused
const inCassandraMode = process.argv[4] === 'cassandra';
const KS = 'node_driver';
let passed = 0;
let failed = 0;

async function check(name, body) {
  try {
    await body();
    passed++;
    console.log(`ok ${name}`);
  } catch (e) {
    failed++;
    console.log(`FAILED ${name}: ${e.stack}`);
  }
}

async function awaitActive(client, table) {
  const query = 'SELECT status FROM system_schema_mcs.tables WHERE keyspace_name = ? AND table_name = ?';
  for (let i = 0; i < 600; i++) {
    const row = (await client.execute(query, [KS, table], { prepare: true })).first();
    if (row && row.status === 'ACTIVE') return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`${table} did not become ACTIVE`);
}

async function createKeyspace(client) {
  await client.execute(`CREATE KEYSPACE ${KS} WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}`);
  for (let i = 0; i < 600; i++) {
    const r = await client.execute('SELECT keyspace_name FROM system_schema_mcs.keyspaces WHERE keyspace_name = ?', [KS]);
    if (r.rowLength === 1) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error('the keyspace was not created');
}

async function createTable(client, name, definition) {
  await client.execute(`CREATE TABLE ${KS}.${name} (${definition})`);
  await awaitActive(client, name);
}

const scalars = {
  ascii: 'plain', bigint: types.Long.fromString('-9223372036854775808'), blob: Buffer.from('00ff10', 'hex'), boolean: true,
  date: types.LocalDate.fromString('2026-11-21'), decimal: types.BigDecimal.fromString('-12345.678900'), double: -1.5e300, float: 0.5,
  inet: types.InetAddress.fromString('2001:db8::1'), int: -2147483648, smallint: -32768, text: 'naïve ☃ 𝄞',
  time: types.LocalTime.fromString('23:59:59.999999999'), timestamp: new Date(1763700000123), timeuuid: types.TimeUuid.now(), tinyint: -128,
  uuid: types.Uuid.random(), varint: types.Integer.fromString('-100000000000000000000000000000000000000'), duration: types.Duration.fromString('1y2mo3d4h5m6s7ns'),
};
if (strict) delete scalars.duration;

async function scalarRoundTrip(client) {
  const names = Object.keys(scalars);
  await createTable(client, 'scalars', `id int PRIMARY KEY, ${names.map((t) => `v_${t} ${t}`).join(', ')}`);
  const columns = names.map((t) => `v_${t}`);
  const insert = `INSERT INTO ${KS}.scalars (id, ${columns.join(', ')}) VALUES (?, ${names.map(() => '?').join(', ')})`;
  await client.execute(insert, [1, ...names.map((t) => scalars[t])], { prepare: true });
  await client.execute(insert, [2, ...names.map(() => null)], { prepare: true });
  const read = async (id) => (await client.execute(`SELECT * FROM ${KS}.scalars WHERE id = ?`, [id], { prepare: true })).first();
  const [full, empty] = [await read(1), await read(2)];
  for (const t of names) {
    assert.strictEqual(String(full[`v_${t}`]), String(scalars[t]), t);
    assert.strictEqual(empty[`v_${t}`], null, t);
  }
  assert.ok(full.v_blob.equals(scalars.blob));
}

async function collectionRoundTrip(client) {
  await createTable(client, 'collections', `id int PRIMARY KEY, l list<text>, s set<int>, m map<text, int>, fl frozen<list<int>>,
    fs frozen<set<text>>, fm frozen<map<int, text>>, nested map<int, frozen<list<text>>>`);
  const row = [1, ['b', 'a', 'b'], [3, 1, 2], { x: 1, y: 2 }, [9, 8], ['p', 'q'], { 1: 'one' }, { 7: ['u', 'v'] }];
  await client.execute(`INSERT INTO ${KS}.collections (id, l, s, m, fl, fs, fm, nested) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`, row, { prepare: true });
  await client.execute(`UPDATE ${KS}.collections SET l = l + ?, s = s - ?, m['z'] = ? WHERE id = 1`, [['c'], [3], 26], { prepare: true });
  const r = (await client.execute(`SELECT * FROM ${KS}.collections WHERE id = 1`)).first();
  assert.deepStrictEqual(r.l, ['b', 'a', 'b', 'c']);
  assert.deepStrictEqual(r.s, [1, 2]);
  assert.deepStrictEqual(r.m, { x: 1, y: 2, z: 26 });
  assert.deepStrictEqual(r.fl, [9, 8]);
  assert.deepStrictEqual(r.fs, ['p', 'q']);
  assert.deepStrictEqual(r.fm, { 1: 'one' });
  assert.deepStrictEqual(r.nested, { 7: ['u', 'v'] });
}

async function createType(client, name, definition) {
  await client.execute(`CREATE TYPE ${KS}.${name} (${definition})`);
  const query = 'SELECT status FROM system_schema_mcs.types WHERE keyspace_name = ? AND type_name = ?';
  for (let i = 0; i < 600; i++) {
    const row = (await client.execute(query, [KS, name], { prepare: true })).first();
    if (row && row.status === 'ACTIVE') return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`${name} did not become ACTIVE`);
}

async function userTypes(client) {
  await createType(client, 'address', 'street text, zip int');
  await createType(client, 'person', 'name text, homes list<frozen<address>>');
  await createTable(client, 'people', 'id int PRIMARY KEY, who frozen<person>, home address, places map<text, frozen<address>>');
  const row = [1, { name: 'Ada', homes: [{ street: 'here', zip: 1 }, { street: 'there' }] }, { zip: 7 }, { x: { street: 'there', zip: 2 } }];
  await client.execute(`INSERT INTO ${KS}.people (id, who, home, places) VALUES (?, ?, ?, ?)`, row, { prepare: true });
  await client.execute(`UPDATE ${KS}.people SET home.street = ? WHERE id = 1`, ['new'], { prepare: true });
  const r = (await client.execute(`SELECT who, home, places, who.name AS name FROM ${KS}.people WHERE id = 1`)).first();
  assert.strictEqual(r.name, 'Ada');
  assert.deepStrictEqual(r.who.homes.map((h) => [h.street, h.zip]), [['here', 1], ['there', null]]);
  assert.deepStrictEqual([r.home.street, r.home.zip], ['new', 7]);
  assert.strictEqual(r.places.x.zip, 2);
  await client.metadata.refreshKeyspace(KS);
  const udt = await client.metadata.getUdt(KS, 'person');
  assert.deepStrictEqual(udt.fields.map((f) => f.name), ['name', 'homes']);
}

// What the driver knows of a type and a table follows their changes, told by events alone.
async function changes(client) {
  const columns = async () => (await client.metadata.getTable(KS, 'changed')).columns.map((c) => c.name).sort().join();
  const fields = async () => (await client.metadata.getUdt(KS, 'changing')).fields.map((f) => f.name).join();
  const becomes = async (read, want) => {
    let got;
    for (let i = 0; i < 600 && got !== want; i++) {
      got = await read();
      if (got !== want) await new Promise((resolve) => setTimeout(resolve, 50));
    }
    assert.strictEqual(got, want);
  };
  await createType(client, 'changing', 'a int');
  await createTable(client, 'changed', 'id int, ck int, v text, u frozen<changing>, PRIMARY KEY (id, ck)');
  await becomes(columns, 'ck,id,u,v');
  await client.execute(`INSERT INTO ${KS}.changed (id, ck, v, u) VALUES (1, 2, 'three', {a: 4})`);
  await client.execute(`ALTER TABLE ${KS}.changed ADD (w int, x text)`);
  await awaitActive(client, 'changed');
  await becomes(columns, 'ck,id,u,v,w,x');
  const read = async () => (await client.execute(`SELECT * FROM ${KS}.changed WHERE id = 1`, [], { prepare: true })).first();
  assert.deepStrictEqual([(await read()).v, (await read()).w], ['three', null]);
  if (!inCassandraMode) return;
  await client.execute(`ALTER TYPE ${KS}.changing ADD b text`);
  await client.execute(`ALTER TYPE ${KS}.changing RENAME a TO aa`);
  await becomes(fields, 'aa,b');
  await client.execute(`ALTER TABLE ${KS}.changed DROP v`);
  await client.execute(`ALTER TABLE ${KS}.changed RENAME ck TO position`);
  await becomes(columns, 'id,position,u,w,x');
  const row = await read();
  assert.deepStrictEqual([row.position, row.u.aa, row.u.b ?? null, row.v], [2, 4, null, undefined]);
}

async function pagingAndBatch(client) {
  await createTable(client, 'pages', 'pk int, ck int, v text, PRIMARY KEY (pk, ck)');
  const insert = `INSERT INTO ${KS}.pages (pk, ck, v) VALUES (?, ?, ?)`;
  const queries = [];
  for (let ck = 0; ck < 25; ck++) queries.push({ query: insert, params: [1, ck, `v${ck}`] });
  await client.batch(queries, { prepare: true, logged: false });
  const seen = [];
  let pages = 0;
  let pageState;
  do {
    const r = await client.execute(`SELECT ck FROM ${KS}.pages WHERE pk = 1 ORDER BY ck DESC`, [], { prepare: true, fetchSize: 7, pageState });
    r.rows.forEach((row) => seen.push(row.ck));
    pageState = r.pageState;
    pages++;
  } while (pageState);
  assert.deepStrictEqual(seen, [...Array(25).keys()].reverse());
  assert.strictEqual(pages, 4);
}

async function errors(client) {
  const fails = async (query, code, text) => {
    const e = await client.execute(query).then(() => null, (error) => error);
    assert.ok(e instanceof cassandra.errors.ResponseError, `${query} must fail, got ${e}`);
    assert.strictEqual(e.code, code, e.message);
    assert.ok(e.message.includes(text), e.message);
  };
  await fails('SELEC 1', types.responseErrorCodes.syntaxError, "line 1:0 no viable alternative at input 'SELEC'");
  if (strict) await fails('SELECT COUNT(*) FROM system.local', types.responseErrorCodes.invalid, 'countRows is not yet supported.');
  await fails(`SELECT * FROM ${KS}.nowhere`, types.responseErrorCodes.invalid, 'nowhere');
  await fails(`CREATE KEYSPACE ${KS} WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}`, types.responseErrorCodes.alreadyExists, KS);
}

async function charges(client) {
  await createTable(client, 'mytable', `pk_col1 int, pk_col2 int, ck_col1 int, ck_col2 int, reg_col1 int, static_col1 int static,
    PRIMARY KEY ((pk_col1, pk_col2), ck_col1, ck_col2)`);
  const options = { customPayload: { capacity: Buffer.alloc(0) } };
  const r = await client.execute(`INSERT INTO ${KS}.mytable (pk_col1, pk_col2, ck_col1, ck_col2, reg_col1, static_col1) VALUES (2, 3, 4, 5, 6, 7)`, [], options);
  assert.strictEqual(r.info.customPayload.RequestCharge.readDoubleBE(0), 4);
  const capacity = JSON.parse(r.info.customPayload.capacity.toString());
  assert.strictEqual(capacity.static_bytes, 122);
  assert.strictEqual(capacity.row_bytes, 134);
  const plain = await client.execute(`INSERT INTO ${KS}.mytable (pk_col1, pk_col2, static_col1) VALUES (1, 2, 6)`);
  assert.strictEqual(plain.info.customPayload.RequestCharge.readDoubleBE(0), 1);
  assert.strictEqual(plain.info.customPayload.capacity, undefined);
}

// With TALLY_CA the server speaks TLS only, and whoever comes must log in.
const trusted = process.env.TALLY_CA && {
  sslOptions: { ca: [fs.readFileSync(process.env.TALLY_CA)], rejectUnauthorized: true },
  credentials: { username: 'cassandra', password: 'cassandra' },
};

async function main() {
  const client = new cassandra.Client({
    contactPoints: [host], protocolOptions: { port }, localDataCenter: 'us-east-1', queryOptions: { consistency: types.consistencies.localQuorum },
    ...trusted,
  });
  await check('connect', () => client.connect());
  await check('create keyspace', () => createKeyspace(client));
  await check('scalar round trip', () => scalarRoundTrip(client));
  await check('collection round trip', () => collectionRoundTrip(client));
  await check('user types', () => userTypes(client));
  await check('changed types and tables', () => changes(client));
  await check('paging and batch', () => pagingAndBatch(client));
  await check('errors', () => errors(client));
  await check('charges', () => charges(client));
  await check('metadata', async () => {
    await client.metadata.refreshKeyspace(KS);
    const table = await client.metadata.getTable(KS, 'pages');
    assert.deepStrictEqual(table.clusteringKeys.map((c) => c.name), ['ck']);
  });
  await client.shutdown();
  console.log(`${passed} passed, ${failed} failed`);
  process.exit(failed ? 1 : 0);
}

main();
