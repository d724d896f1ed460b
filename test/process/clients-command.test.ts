// §13.6: postern clients hash, and what doctor says of clients that log in as themselves.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { writeFileIn } from '../support/catalogs/catalog-files.ts';
import { runDoctor } from '../support/gateway/doctor.ts';
import { makeFolder } from '../support/gateway/process.ts';
import { runInside } from '../support/gateway/run-inside.ts';
import { closeAfterTest } from '../support/lifetimes.ts';
import { hashHex, newKey, withSecret } from '../support/oauth/machine-clients.ts';

const run = (args: readonly string[], input = '') =>
  runInside({}, { args: ['clients', 'hash', ...args], input });

test('§13.6 clients hash: makes a secret, shown once with its hash, another one each time', async () => {
  const [one, other] = [await run([]), await run([])];
  const [, secret = '', hash] =
    /\n {2}(\S{43})\n\nFor the configuration file:\n {2}"secretSha256": "([0-9a-f]{64})"\n$/.exec(
      one.stdout,
    ) ?? [];
  expect(hash).toBe(hashHex(secret));
  expect(other.stdout).not.toContain(secret);
  const { secret: made, secretSha256 } = JSON.parse((await run(['--json'])).stdout);
  expect(secretSha256).toBe(hashHex(made));
});

test('§13.6 clients hash: of a secret that one has it prints the hash alone', async () => {
  const secret = 'x'.repeat(32);
  const { code, stdout } = await run(['--secret', '-'], `${secret}\n`);
  expect([code, stdout]).toEqual([
    0,
    `For the configuration file:\n  "secretSha256": "${hashHex(secret)}"\n`,
  ]);
});

test.each([
  [['--secret', '-'], 'x'.repeat(31), /has 31 characters\. It must be random, with at least 32/],
  [['--secret', '-'], '', /it is empty/],
  [
    ['--secret', '-'],
    `${'x'.repeat(32)} ${'x'.repeat(32)}`,
    /printable ASCII characters, without spaces/,
  ],
  [['--secret', '-'], 'x'.repeat(1025), /at most 1024/],
  [['--secret', 'x'.repeat(40)], '', /other users of the machine can read/],
  [['--secret-file', 'absent.txt'], '', /absent\.txt cannot be read \(ENOENT\)/],
] as const)('§13.6 clients hash: refuses %j', async (args, input, says) => {
  const { code, stdout, stderr } = await run(args, input);
  expect([code, stdout]).toEqual([2, '']);
  expect(stderr).toMatch(says);
});

test('§13.6 doctor: how many clients there are, and whether their keys can be fetched', async () => {
  const server = createServer((_req, res) => res.end(JSON.stringify({ keys: [newKey().jwk] })));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closeAfterTest({ close: () => new Promise<void>((resolve) => server.close(() => resolve())) });
  const { port } = server.address() as AddressInfo;
  const folder = await makeFolder();
  const clients = [
    withSecret('ci'),
    { id: 'good', jwksUri: `http://127.0.0.1:${port}/jwks` },
    { id: 'bad', jwksUri: 'http://127.0.0.1:9/jwks' },
  ];
  await writeFileIn(folder, 'mcp.json', JSON.stringify({ rules: 'everyone', clients }));
  const { findings } = await runDoctor(undefined, {
    cwd: folder,
    args: ['--config', 'mcp.json'],
    env: {
      OIDC_ISSUER: 'http://127.0.0.1:9',
      OAUTH_CLIENT_ID: 'gateway',
      OAUTH_MODE: 'broker',
      DATA_DIR: folder,
    },
  });
  const found = findings.filter(({ check }) => check === 'machine-clients');
  expect(found.map(({ status, what }) => [status, what])).toEqual([
    ['ok', '3 clients can log in as themselves: ci, good, bad.'],
    ['ok', 'The keys of client good can be fetched (1 key).'],
    [
      'failure',
      'The keys of client bad cannot be fetched from http://127.0.0.1:9/jwks, so it cannot log in.',
    ],
  ]);
});
