// OAuth Client ID Metadata Documents: which URLs may be a client id, and what a document may say.
import { beforeEach, expect, test } from 'vitest';
import { ClientDocumentRefused } from '../../../src/logins/client-id-metadata/client-document.ts';
import { useShared } from '../../support/lifetimes.ts';
import { startClientDocuments } from '../../support/oauth/client-documents.ts';
import { documentAnswer, REDIRECT } from '../../support/oauth/document-host.ts';

const HOSTS = ['client.example', 'claude.ai', 'xn--bcher-kva.example'];
const URL_ID = 'https://client.example/oauth/client.json';

const started = useShared(() => startClientDocuments(HOSTS, [...HOSTS, 'other.example']));
let documents: typeof started.documents;
let id = URL_ID;
let count = 0;

beforeEach(() => {
  documents = started.open();
  started.host.answer(documentAnswer());
  count += 1;
  id = `${URL_ID}/${count}`;
});

const refused = async (clientId: string, message: string | RegExp, from = documents) => {
  const error = await from.find(clientId).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(ClientDocumentRefused);
  expect(String(error)).toMatch(message);
};

test('§14 client documents: a client is known by the document at its URL', async () => {
  started.host.answer(
    documentAnswer({
      client_name: 'Café 𝄞 <b>',
      client_uri: 'https://client.example/',
      logo_uri: 'https://logo.example/logo.png',
      grant_types: ['authorization_code', 'refresh_token', 'device_code'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
      scope: 'openid',
      jwks_uri: 'https://client.example/jwks',
    }),
  );
  expect(await documents.find(id)).toEqual({
    client_id: id,
    client_name: 'Café 𝄞 <b>',
    redirect_uris: [REDIRECT],
    token_endpoint_auth_method: 'none',
  });
});

test('§14 client documents: client_id and redirect_uris are enough; nothing else is fetched', async () => {
  const before = started.host.requests.length;
  expect(await documents.find(id)).toEqual({
    client_id: id,
    redirect_uris: [REDIRECT],
    token_endpoint_auth_method: 'none',
  });
  expect(started.host.requests.length).toBe(before + 1);
});

test.each([
  ['svc-abcdefghijkl', false],
  ['http://client.example/a', false],
  ['', false],
  [' https://client.example/a', false],
  ['xhttps://client.example/a', false],
  [URL_ID, true],
  ['HTTPS://client.example/a', true],
  ['https:client.example', true],
  ['https:\\\\client.example', true],
])('§14 client documents: whether %j claims to be such a URL', (clientId, expected) => {
  expect(documents.isClientDocumentId(clientId)).toBe(expected);
});

const BAD_URLS: readonly (readonly [clientId: string, message: RegExp])[] = [
  ['http://client.example/a', /does not begin with https/],
  ['HTTPS://client.example/a', /does not begin with https/],
  ['https:/client.example/a', /does not begin with https/],
  ['https:client.example/a', /does not begin with https/],
  ['svc-abc', /does not begin with https/],
  ['', /does not begin with https/],
  ['https:\\\\client.example\\a', /a backslash/],
  ['https://client.example/a b', /white space/],
  ['https://client.example/a\n', /white space/],
  ['https://client.exam\tple/a', /white space/],
  ['https://client.example/é', /beyond ASCII/],
  ['https://client.example/\u0000', /a control character/],
  [`https://client.example/${'a'.repeat(2026)}`, /longer than 2048/],
  ['https://client.example/a#b', /has a fragment/],
  ['https://client.example/a#', /has a fragment/],
  ['https://client.example/a?b=c', /has a query/],
  ['https://client.example/a?', /has a query/],
  ['https://client.example?/a', /has a query/],
  ['https://user@client.example/a', /has user info/],
  ['https://user:secret@client.example/a', /has user info/],
  ['https://@client.example/a', /has user info/],
  ['https://client.example:8443/a', /has a port/],
  ['https://client.example:443/a', /has a port/],
  ['https://client.example:0443/a', /has a port/],
  ['https://client.example:/a', /has a port/],
  ['https://client.example./a', /ends with a dot/],
  ['https://client.example', /has no path/],
  ['https://client.example/', /has no path/],
  ['https:///a', /not a valid URL|not in its normal form/],
  ['https://', /not a valid URL/],
  ['https://%/a', /not a valid URL/],
  ['https://client.example/./a', /a segment \. or \.\./],
  ['https://client.example/a/..', /a segment \. or \.\./],
  ['https://client.example/a/../b', /a segment \. or \.\./],
  ['https://client.example/a/%2e%2E/b', /a segment \. or \.\./],
  ['https://client.example/.%2e/b', /a segment \. or \.\./],
  ['https://CLIENT.example/a', /not in its normal form/],
  ['https://client%2eexample/a', /not in its normal form/],
  ['https://client.example/a"b', /not in its normal form/],
];

test.each(BAD_URLS)('§14 client documents: %j is no client id', async (clientId, message) => {
  const { host, open } = started;
  const before = host.resolved.length;
  await refused(clientId, message, open(host.network, ['*', 'client.example']));
  expect(host.resolved.length).toBe(before);
});

const ODD_PATHS = [
  '/a',
  '/a/',
  '//a',
  '/a%2Fb',
  '/.well-known/client',
  '/...',
  '/a;b=c,d',
  '/~a:b@c',
];

test.each(ODD_PATHS)('§14 client documents: the path %s is asked for as it is', async (path) => {
  const clientId = `https://client.example${path}`;
  expect((await documents.find(clientId)).client_id).toBe(clientId);
  expect(started.host.requests.at(-1)?.path).toBe(path);
});

test('§14 client documents: 2048 characters are not too long', async () => {
  const longest = `https://client.example/${'a'.repeat(2025)}`;
  expect(longest.length).toBe(2048);
  expect((await documents.find(longest)).client_id).toBe(longest);
});

const LOOK_ALIKES = [
  'claude.ai.evil.example',
  'evil-claude.ai',
  'www.claude.ai',
  'claude.ai@evil.example',
  'CLAUDE.AI',
  'claude.ai.',
  'claude.ai%00.evil.example',
  'claude.ai:8443',
  'claude-ai',
  'claude.a',
  'laude.ai',
  'xn--clude-lwe.ai',
  'clаude.ai', // a Cyrillic а
  'claude。ai', // an ideographic full stop
  'claude.ai\\.evil.example',
  'localhost',
  '*',
];

test.each(LOOK_ALIKES)('§14 client documents: %s is not claude.ai', async (host) => {
  const before = started.host.resolved.length;
  await refused(`https://${host}/oauth/client`, /./);
  expect(started.host.resolved.length).toBe(before);
});

test('§14 client documents: a host that is not allowed is told with the setting to mend it', async () => {
  const message =
    'The host other.example of the client_id is not allowed here. An operator can add it to CIMD_ALLOWED_HOSTS.';
  await refused('https://other.example/a', message);
  await refused('https://client.example/a', /CIMD_ALLOWED_HOSTS/, started.open(undefined, []));
});

test('§14 client documents: with * any public host is allowed', async () => {
  started.host.answer(documentAnswer({}, {}, 'other.example'));
  const anyHost = started.open(undefined, ['*']);
  expect((await anyHost.find('https://other.example/a')).client_id).toBe('https://other.example/a');
});

test('§14 client documents: an international host is allowed in its ASCII form', async () => {
  started.host.answer(documentAnswer({}, {}, 'xn--bcher-kva.example'));
  const clientId = 'https://xn--bcher-kva.example/a';
  expect((await documents.find(clientId)).client_id).toBe(clientId);
  await refused('https://bücher.example/a', /beyond ASCII/);
});

const BAD_DOCUMENTS: readonly (readonly [members: object, message: RegExp])[] = [
  [{ client_id: undefined }, /has another client_id than its own URL/],
  [{ client_id: 'https://client.example/other' }, /has another client_id/],
  [{ client_id: 5 }, /has another client_id/],
  [{ client_secret: 's' }, /has a client_secret/],
  [{ client_secret: null }, /has a client_secret/],
  [{ client_secret_expires_at: 0 }, /has a client_secret_expires_at/],
  [{ token_endpoint_auth_method: 'private_key_jwt' }, /token_endpoint_auth_method other than none/],
  [{ token_endpoint_auth_method: 'client_secret_basic' }, /other than none/],
  [{ token_endpoint_auth_method: 5 }, /other than none/],
  [{ token_endpoint_auth_method: ['none'] }, /other than none/],
  [{ grant_types: ['refresh_token'] }, /grant_types without authorization_code/],
  [{ grant_types: [] }, /grant_types without/],
  [{ grant_types: 'authorization_code' }, /grant_types without/],
  [{ response_types: ['token'] }, /response_types without code/],
  [{ response_types: 'code' }, /response_types without code/],
  [{ redirect_uris: undefined }, /an array of 1 to 10 strings/],
  [{ redirect_uris: [] }, /an array of 1 to 10 strings/],
  [{ redirect_uris: REDIRECT }, /an array of 1 to 10 strings/],
  [{ redirect_uris: [REDIRECT, 5] }, /an array of 1 to 10 strings/],
  [{ redirect_uris: Array(11).fill(REDIRECT) }, /an array of 1 to 10 strings/],
  [{ redirect_uris: [REDIRECT, 'https://a.example/#'] }, /redirect_uris\[1\] has a fragment/],
  [{ redirect_uris: ['javascript:alert(1)'] }, /redirect_uris\[0\] is not https/],
];

test.each(BAD_DOCUMENTS)('§14 client documents: %j is refused', async (members, message) => {
  started.host.answer(documentAnswer(members));
  await refused(id, message);
  await refused(id, `The client's metadata document ${id} `);
});

test.each([
  ['nothing', ''],
  ['an array', '[]'],
  ['null', 'null'],
  ['a string', '"x"'],
  ['HTML', '<!doctype html>'],
  ['two objects', '{}{}'],
  ['bytes that are no UTF-8', Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])],
  ['deep nesting', '['.repeat(30_000)],
])('§14 client documents: %s is not a JSON object', async (_what, body) => {
  started.host.answer((res) => {
    res.writeHead(200, { 'Content-Type': 'application/json' }).end(body);
  });
  await refused(id, /is not a JSON object/);
});

test.each([[{ client_name: 5 }], [{ client_name: '' }], [{ client_name: 'a'.repeat(201) }]])(
  '§14 client documents: %j is left out',
  async (members) => {
    started.host.answer(documentAnswer(members));
    expect(Object.keys(await documents.find(id))).toEqual([
      'client_id',
      'redirect_uris',
      'token_endpoint_auth_method',
    ]);
  },
);

test('§14 client documents: a name of 200 characters and 10 redirect URIs are taken', async () => {
  const members = { client_name: 'a'.repeat(200), redirect_uris: Array(10).fill(REDIRECT) };
  started.host.answer(documentAnswer(members));
  expect(await documents.find(id)).toMatchObject(members);
});
