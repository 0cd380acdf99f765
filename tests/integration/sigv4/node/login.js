// Logs in to Tally by AWS's SigV4 plugin for the Node driver: node login.js HOST PORT TLS-PORT CA
// A login a line on stdin, a JSON array of transport (plain or tls), region, key, secret and token; a line each of what came of it; test_sigv4.py says what is right.
'use strict';
const fs = require('fs');
const readline = require('readline');
const cassandra = require('cassandra-driver');
const { SigV4AuthProvider } = require('aws-sigv4-auth-cassandra-plugin');

const [, , host, port, tlsPort, ca] = process.argv;

async function login(transport, region, accessKeyId, secretAccessKey, sessionToken) {
  const tls = transport === 'tls';
  const client = new cassandra.Client({
    contactPoints: [host], localDataCenter: region, protocolOptions: { port: Number(tls ? tlsPort : port) },
    sslOptions: tls ? { ca: [fs.readFileSync(ca)], host, rejectUnauthorized: true } : undefined,
    authProvider: new SigV4AuthProvider({ region, accessKeyId, secretAccessKey, sessionToken: sessionToken || undefined }) });
  try {
    return ['ok', (await client.execute('SELECT key FROM system.local')).first().key];
  } catch (e) {
    const [cause] = Object.values(e.innerErrors || { none: e });
    return [cause.constructor.name, cause.message];
  } finally {
    await client.shutdown();
  }
}

(async () => {
  for await (const line of readline.createInterface({ input: process.stdin })) console.log(JSON.stringify(await login(...JSON.parse(line))));
})();
