// Tally's AWS API through the AWS SDK for JavaScript v3: node api_test.js URL SIGNED-URL
// Prints what it sees, a JSON array [what, value] a line; test_sdks.py says what is right.
'use strict';
const readline = require('readline');
const sdk = require('@aws-sdk/client-keyspaces');

const input = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const show = (what, value) => console.log(JSON.stringify([what, value]));
const moment = () => new Promise((resolve) => setTimeout(resolve, 20));
const classes = ['AccessDeniedException', 'ConflictException', 'ResourceNotFoundException', 'ServiceQuotaExceededException', 'ValidationException',
  'InternalServerException'];

// The class that a caller would catch, or "untyped" and the code.
function refusal(e) {
  const name = classes.find((c) => e instanceof sdk[c]) || `untyped ${e.name}`;
  return [name, e.$metadata && e.$metadata.httpStatusCode, e.message, e.resourceArn || ''];
}

async function refused(call) {
  try {
    await call();
    return ['ok'];
  } catch (e) {
    return refusal(e);
  }
}

function client(url, region, accessKeyId, secretAccessKey, sessionToken) {
  const credentials = { accessKeyId, secretAccessKey, ...(sessionToken ? { sessionToken } : {}) };
  const c = new sdk.KeyspacesClient({ region, endpoint: url, credentials, maxAttempts: 1 });
  const call = (operation, parameters) => c.send(new sdk[`${operation}Command`](parameters));
  return Object.assign(call, { client: c });
}

// As the SDK's examples wait: until it has the status, or is gone. Tells the statuses that it sees, if asked to.
async function until(call, keyspaceName, tableName, status, tell) {
  let seen;
  for (let i = 0; i < 3000 && seen !== status; i++) {
    if (i > 0) await moment();
    let now = 'gone';
    try {
      now = (await call('GetTable', { keyspaceName, tableName })).status;
    } catch (e) {
      if (!(e instanceof sdk.ResourceNotFoundException)) throw e;
    }
    if (tell && now !== seen) show(tableName, now);
    seen = now;
  }
}

// A keyspace is a moment in coming; until then what is made in it is a conflict.
async function whenKeyspaceIsThere(body) {
  for (let i = 0; ; i++) {
    try {
      return await body();
    } catch (e) {
      if (!(e instanceof sdk.ConflictException) || i === 3000) throw e;
    }
    await moment();
  }
}

const columns = (t) => t.schemaDefinition.allColumns.map((c) => `${c.name} ${c.type}`);

async function life(call, keyspaceName) {
  const tableName = 'orders';
  const get = () => call('GetTable', { keyspaceName, tableName });
  const update = async (parameters) => {
    await call('UpdateTable', { keyspaceName, tableName, ...parameters });
    await until(call, keyspaceName, tableName, 'ACTIVE', false);
    return get();
  };
  const use = async (table) => {
    show('use', table);
    await input.next(); // by CQL, meanwhile
  };
  show('create keyspace', (await call('CreateKeyspace', { keyspaceName, tags: [{ key: 'team', value: 'a' }] })).resourceArn);
  const { resourceArn } = await whenKeyspaceIsThere(() => call('CreateTable', {
    keyspaceName, tableName, comment: { message: 'of the shop' }, pointInTimeRecovery: { status: 'ENABLED' }, tags: [{ key: 'team', value: 'a' }],
    schemaDefinition: {
      allColumns: [{ name: 'id', type: 'int' }, { name: 'at', type: 'timestamp' }, { name: 'note', type: 'text' }],
      partitionKeys: [{ name: 'id' }], clusteringKeys: [{ name: 'at', orderBy: 'DESC' }] } }));
  show('create table', resourceArn);
  await until(call, keyspaceName, tableName, 'ACTIVE', true);
  const t = await get();
  const { partitionKeys: [partition], clusteringKeys: [clustering] } = t.schemaDefinition;
  show('get table', [columns(t), partition.name, clustering.name, clustering.orderBy, t.capacitySpecification.throughputMode, t.comment.message,
    t.pointInTimeRecovery.status]);
  show('age', (Date.now() - t.creationTimestamp.getTime()) / 1000);
  await use(tableName);

  show('add a column', columns(await update({ addColumns: [{ name: 'more', type: 'list<int>' }] })));
  const { capacitySpecification: capacity } = await update({ capacitySpecification: { throughputMode: 'PROVISIONED', readCapacityUnits: 5, writeCapacityUnits: 6 } });
  show('change the capacity mode', [capacity.throughputMode, capacity.readCapacityUnits, capacity.writeCapacityUnits]);

  const tags = async () => {
    await until(call, keyspaceName, tableName, 'ACTIVE', false);
    const of = [];
    for await (const page of sdk.paginateListTagsForResource({ client: call.client, pageSize: 1 }, { resourceArn })) of.push(...page.tags);
    return of.map((g) => `${g.key}=${g.value}`);
  };
  await call('TagResource', { resourceArn, tags: [{ key: 'cost', value: 'b' }] });
  show('tag', await tags());
  await call('UntagResource', { resourceArn, tags: [{ key: 'team', value: 'a' }] });
  show('untag', await tags());

  const type = { keyspaceName, typeName: 'address' };
  await call('CreateType', { ...type, fieldDefinitions: [{ name: 'street', type: 'text' }, { name: 'no', type: 'int' }] });
  let of = await call('GetType', type);
  while (of.status !== 'ACTIVE') of = await call('GetType', type);
  show('type', [of.fieldDefinitions.map((f) => `${f.name} ${f.type}`), (await call('ListTypes', { keyspaceName })).types]);
  show('delete type', (await call('DeleteType', type)).typeName);

  const source = { sourceKeyspaceName: keyspaceName, sourceTableName: tableName };
  const restored = await call('RestoreTable', { ...source, targetKeyspaceName: keyspaceName, targetTableName: 'again', restoreTimestamp: new Date() });
  show('restore', restored.restoredTableARN);
  await until(call, keyspaceName, 'again', 'ACTIVE', true);
  await use('again');

  const names = (page) => page.tables.map((x) => x.tableName);
  const byPaginator = [];
  const byToken = [];
  for await (const page of sdk.paginateListTables({ client: call.client, pageSize: 1 }, { keyspaceName })) byPaginator.push(names(page));
  let nextToken;
  do {
    const page = await call('ListTables', { keyspaceName, maxResults: 1, nextToken });
    byToken.push(names(page));
    nextToken = page.nextToken;
  } while (nextToken);
  show('list by pages', [byPaginator, byToken]);

  show('refused', await refused(() => call('GetTable', { keyspaceName, tableName: 'none' })));
  show('refused', await refused(() => call('CreateKeyspace', { keyspaceName })));
  show('refused', await refused(() => call('CreateKeyspace', { keyspaceName: '_x' })));
  show('refused', await refused(async () => { // the server holds four
    for (let i = 0; i < 5; i++) await call('RestoreTable', { ...source, targetKeyspaceName: 'held', targetTableName: `t${i}` });
  }));
  for (const name of ['again', tableName]) {
    await call('DeleteTable', { keyspaceName, tableName: name });
    await until(call, keyspaceName, name, 'gone', true);
  }
  await call('DeleteKeyspace', { keyspaceName });
  let end = ['ok'];
  for (let i = 0; i < 3000 && end[0] === 'ok'; i++) {
    end = await refused(() => call('GetKeyspace', { keyspaceName }));
    await moment();
  }
  show('delete keyspace', end[0]);
}

async function main() {
  const [, , url, signedUrl] = process.argv;
  await life(client(url, 'us-east-1', 'any', 'any'), 'Shop');
  for (let line = await input.next(); !line.done; line = await input.next()) { // a login a line: JSON of region, key, secret, token and a keyspace to make
    const [region, key, secret, token, keyspaceName] = JSON.parse(line.value);
    const call = client(signedUrl, region, key, secret, token);
    const listed = await refused(() => call('ListKeyspaces', {}));
    if (listed[0] !== 'ok') show('list keyspaces', listed);
    else show('create keyspace', await refused(() => call('CreateKeyspace', { keyspaceName })));
  }
}

main().catch((e) => {
  console.error(e);
  process.exitCode = 1;
});
