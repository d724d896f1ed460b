// §13.6: `clients` of the configuration file: what is wrong with them, each with its place and what is allowed.

import { Ajv } from 'ajv';
import { expect, test } from 'vitest';
import { loadConfig } from '../../../src/config/load.ts';
import { formatProblem } from '../../../src/config/problem.ts';
import { createGatewayFileSchema } from '../../../src/gateway/configuration/gateway-file.ts';
import { findMachineClientProblems } from '../../../src/logins/client-authentication/machine-client-shape.ts';
import { hashHex, newKey } from '../../support/oauth/machine-clients.ts';
import { findProblems, parseFile, readFile } from '../../support/upstreams/gateway-file.ts';

const HASH = hashHex('a-secret-that-is-long-enough-to-be-random');
const KEY = newKey();
const OK = { id: 'ci', secretSha256: HASH };
const isValid = new Ajv({ allowUnionTypes: true, strictTypes: false }).compile(
  createGatewayFileSchema(),
);

test.each([
  OK,
  {
    ...OK,
    id: 'A.b_c-1',
    scopes: ['a:b'],
    groups: ['g h'],
    resources: ['/mcp', '/admin', 'https://gw.example/mcp/x'],
    rateLimit: 5,
  },
  { id: 'x'.repeat(64), jwks: { keys: [KEY.jwk] } },
  { id: 'x', jwksUri: 'https://keys.example/jwks' },
  { id: 'x', jwksUri: 'http://127.0.0.1:1/jwks' },
  { id: 'x', secretSha256: HASH.toUpperCase(), scopes: [], groups: [] },
])('§13.6 file: %j is a client', async (client) => {
  const content = { clients: [client] };
  expect(await findProblems(content)).toEqual([]);
  expect(isValid(content)).toBe(true);
  expect((await readFile(content)).clients).toMatchObject([{ id: client.id }]);
});

test.each([
  [{ ...OK, id: 'svc-ci' }, /clients\[0\]\.id: .*begin with svc-, https: or postern-/],
  [{ ...OK, id: 'SVC-ci' }, /begin with svc-/],
  [{ ...OK, id: 'https://ci.example' }, /begin with svc-/],
  [{ ...OK, id: 'postern-ci' }, /begin with svc-/],
  [{ ...OK, id: '' }, /1 to 64 letters, digits/],
  [{ ...OK, id: 'a b' }, /1 to 64 letters, digits/],
  [{ ...OK, id: 'client:ci' }, /1 to 64 letters, digits/],
  [{ ...OK, id: 'é' }, /1 to 64 letters, digits/],
  [{ ...OK, id: 'x'.repeat(65) }, /1 to 64 letters, digits/],
  [{ ...OK, id: 7 }, /This is a number, and must be text/],
  [{ secretSha256: HASH }, /clients\[0\]: "id" is missing/],
  [{ id: 'ci' }, /"secretSha256", "jwks" or "jwksUri" is missing/],
  [{ ...OK, jwksUri: 'https://keys.example' }, /clients\[0\]\.jwksUri: Only one of/],
  [
    { id: 'ci', secretSha256: 'my-secret' },
    /\(not shown\).* 64 hexadecimal digits, as postern clients hash/,
  ],
  [{ ...OK, secret: 'my-secret' }, /clients\[0\]\.secret: The file has the hash of a secret/],
  [
    { id: 'ci', jwksUri: 'http://keys.example/jwks' },
    /an absolute https URL; http is for loopback alone/,
  ],
  [{ id: 'ci', jwksUri: 'keys' }, /an absolute https URL/],
  [{ id: 'ci', jwks: [] }, /A list is not valid\. It must be a JWK Set/],
  [{ id: 'ci', jwks: {} }, /the key set has no keys/],
  [{ id: 'ci', jwks: { keys: [] } }, /no key that can be used/],
  [{ id: 'ci', jwks: { keys: [{ kty: 'oct', k: 'AAAA' }] } }, /private or secret key/],
  [{ id: 'ci', jwks: { keys: [{ ...KEY.jwk, d: 'AAAA' }] } }, /private or secret key/],
  [{ ...OK, scopes: 'read' }, /clients\[0\]\.scopes: .* a list of scopes/],
  [{ ...OK, scopes: ['a b'] }, /clients\[0\]\.scopes\[0\]: .* one scope/],
  [{ ...OK, scopes: Array.from({ length: 33 }, (_, at) => `s${at}`) }, /32 scopes at most/],
  [{ ...OK, groups: [''] }, /the name of a group/],
  [{ ...OK, resources: [] }, /The list is empty/],
  [{ ...OK, resources: ['mcp'] }, /a path of this gateway/],
  [{ ...OK, resources: ['/mcp/nothing'] }, /"\/mcp\/nothing" names no server or view of this file/],
  [{ ...OK, resources: Array.from({ length: 17 }, () => '/mcp') }, /16 resources at most/],
  [{ ...OK, rateLimit: 0 }, /from 1 to/],
  [{ ...OK, rateLimit: '5' }, /without quotes/],
  [{ ...OK, scope: ['a'] }, /"scope" is not known\. Did you mean scopes\?/],
] as const)('§13.6 file: %j is refused', async (client, says) => {
  const problems = await findProblems({ clients: [client] });
  expect(problems).toEqual([expect.stringMatching(says)]);
  expect(problems.join()).not.toContain('my-secret');
  expect(problems[0]).toMatch(/^mcp\.json:\d+: clients\[0\]/);
});

test('§13.6 file: each client has an ID of its own', async () => {
  const text = `{
  "clients": [
    { "id": "ci", "secretSha256": "${HASH}" },
    { "id": "ci", "jwksUri": "https://keys.example/jwks" }
  ]
}`;
  expect(await findProblems(text)).toEqual([
    'mcp.json:4: clients[1]: There is another client "ci" in line 3. Each client needs its own ID.',
  ]);
});

test('§13.6 file: YAML has them, too', async () => {
  const text = `clients:\n  - id: ci\n    secretSha256: ${HASH}\n    rateLimit: no\n`;
  const parsed = await parseFile(text, { format: 'yaml', fileName: 'mcp.yml' });
  expect(parsed).toMatchObject({
    problems: [expect.stringMatching(/^mcp\.yml:4: clients\[0\]\.rateLimit: /)],
  });
});

const BROKER = {
  BASE_URL: 'https://gw.example',
  OIDC_ISSUER: 'https://issuer.example',
  OAUTH_MODE: 'broker',
  OAUTH_CLIENT_ID: 'gateway',
};

test.each([
  [{ ...BROKER }, []],
  [{ ...BROKER, OAUTH_MODE: 'proxy' }, [/^mcp\.json:3: clients\[0\]: Only .* OAUTH_MODE=proxy/]],
] as const)('§13.6 file: with %j', async (env, says) => {
  const { clients } = await readFile({ clients: [OK] });
  const problems = findMachineClientProblems(clients, loadConfig(env)).map(formatProblem);
  expect(problems).toEqual(says.map((one) => expect.stringMatching(one)));
});

test('§13.6 file: a resource that is a URL is one of this gateway', async () => {
  const { clients } = await readFile({
    clients: [
      {
        ...OK,
        resources: ['https://gw.example/mcp', 'https://gw.example', 'https://gw.example.evil/mcp'],
      },
    ],
  });
  expect(findMachineClientProblems(clients, loadConfig(BROKER)).map(formatProblem)).toEqual([
    'mcp.json:3: clients[0]: The resource "https://gw.example.evil/mcp" is not one of this gateway. It must begin with BASE_URL, which is https://gw.example, or be a path such as /mcp.',
  ]);
});
