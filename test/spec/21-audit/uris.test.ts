// §21.1: of a URI neither user info nor query nor fragment is told, however it is written: not in the log, the audit
// log, traces, or the operators' page.
import { describe, expect, test } from 'vitest';
import { stripUri, stripUrisIn } from '../../../src/platform/secret-texts.ts';
import { stateless } from '../../support/clients/stateless.ts';
import { createAuditLog } from '../../support/gateway/audit-log.ts';
import { startCollector } from '../../support/gateway/collector.ts';
import type { TestGateway } from '../../support/gateway/gateway.ts';
import { collectLog } from '../../support/gateway/log.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { startCatalogGateway } from '../../support/upstreams/catalog-gateway.ts';
import { serveForTest } from '../../support/upstreams/listing-server.ts';

const ODD_URIS = [
  'https://SECRET:SECRET@host/x?token=SECRET#SECRET',
  'HTTPS://u:SECRET@host/x?token=SECRET#SECRET',
  'vault:secret?token=SECRET',
  'vault:u:SECRET@host/x',
  'https:u:SECRET@host/x#SECRET',
  '//u:SECRET@host/x?token=SECRET',
  'u:SECRET@host?token=SECRET',
  'x?token=SECRET',
  'https://u:SECRET%40host/x%3Ftoken=SECRET',
  'https://u:p%2540SECRET@host/x%253ftoken=SECRET%2523SECRET',
  'https:%2F%2Fu:SECRET@host/x%23SECRET',
  'https:\\\\u:SECRET@host\\x?token=SECRET',
  'https:///u:SECRET@host/x',
  'https://u:SECRET/SECRET@host/x',
  'https://u:p@SECRET@host/x',
  'https://[::1/u:SECRET@host/x',
  ' https://u:SECRET@host/x?token=SECRET',
  'ht\ntps://u:SECRET\n@host/x?\ntoken=SECRET',
  'https://host/x?a="SECRET"&b=SECRET\\SECRET\'SECRET SECRET',
  'https://host/{id}{?SECRET}{#SECRET}',
  `https://host/${'x'.repeat(500)}?token=SECRET`,
] as const;

/** All that may be shown to somebody else than the caller: each call is made with each URI. */
async function callWith(gateway: TestGateway, era: 'session' | 'stateless') {
  const session = era === 'session' ? await gateway.open() : undefined;
  const send = async (
    method: string,
    params: object,
    headers: Readonly<Record<string, string>> = {},
  ) =>
    session === undefined
      ? stateless(gateway, method, params as Readonly<Record<string, unknown>>, { headers })
      : gateway.call(session, method, params);
  for (const uri of ODD_URIS) {
    await send('resources/read', { uri });
    await send('resources/read', { uri }, { 'mcp-name': 'https://u:SECRET@other/?SECRET' });
    const argument = { name: 'id', value: 'x' };
    await send('completion/complete', { ref: { type: 'ref/resource', uri }, argument });
    if (era === 'session') {
      for (const method of ['resources/subscribe', 'resources/unsubscribe'])
        await send(method, { uri });
    } else {
      await send('subscriptions/listen', { notifications: { resourceSubscriptions: [uri] } });
    }
  }
}

describe.each(['session', 'stateless'] as const)('in the %s era', (era) => {
  test.each([
    ['is refused by everybody', {}, []],
    ['a server refuses in words that repeat it', {}, ['{+any}', 'https://{+any}', 'vault:{+any}']],
    [
      'rules deny',
      { rules: [{ who: { groups: ['nobody'] }, may: ['*', 'resource:*'] }] },
      ['{+any}', 'https://{+any}', 'vault:{+any}'],
    ],
  ])('§21.1 URIs: what %s leaves no secret anywhere', async (_why, rules, templates) => {
    const audit = await createAuditLog();
    const collector = closeAfterTest(await startCollector());
    const server = await serveForTest({
      resourceTemplates: templates.map((uriTemplate) => ({ uriTemplate, name: 'any' })),
      capabilities: { resources: { subscribe: true }, completions: {} },
      answers: Object.fromEntries(
        ['resources/read', 'resources/subscribe', 'completion/complete'].map((method) => [
          method,
          (params: { uri?: string; ref?: { uri?: string } }) => ({
            error: { code: -32002, message: `Not found: ${params.uri ?? params.ref?.uri}` },
          }),
        ]),
      ),
    });
    const gateway = await startCatalogGateway({
      file: { mcpServers: { one: server.url }, ...rules },
      env: { ...audit.env, ...collector.env, MCP_STREAMS: 'true' },
    });
    await callWith(gateway, era);
    await gateway.close();

    expect(gateway.log.filter((line) => JSON.stringify(line).includes('SECRET'))).toEqual([]);
    expect(audit.lines().filter(({ event }) => event === 'resource_read').length).toBeGreaterThan(
      0,
    );
    expect(audit.text()).not.toContain('SECRET');
    expect(collector.spans().length).toBeGreaterThan(ODD_URIS.length);
    const leaking = collector.spans().filter((span) => JSON.stringify(span).includes('SECRET'));
    expect(leaking.map(({ name }) => name)).toEqual([]);
  });
});

test('§21.1 URIs: a server lists none that the log would repeat whole', async () => {
  const gateway = closeAfterTest(
    await startCatalogGateway({
      file: {
        mcpServers: {
          one: (await serveForTest({ resources: ODD_URIS.map((uri) => ({ uri })) })).url,
        },
      },
    }),
  );
  await gateway.listNames('resources/list');
  expect(gateway.lines().length).toBeGreaterThan(0);
  expect(gateway.lines().filter((line) => JSON.stringify(line).includes('SECRET'))).toEqual([]);
});

test.each([
  ['https://host:8443/a/b@v2/c', 'https://host:8443/a/b@v2/c'],
  ['https://[2001:db8::1]:8443/a@b', 'https://[2001:db8::1]:8443/a@b'],
  ['npm://registry/@scope/name', 'npm://registry/@scope/name'],
  ['https://u:p@host/x?token=1#f', 'https://host/x'],
  ['vault:secret/one', 'vault:secret/one'],
  ['file:///srv/docs/100%25', 'file:///srv/docs/100%25'],
  ['https://host/{id}{?page}', 'https://host/{id}'],
])('§21.1 URIs: what tells %s apart from others is told', (uri, told) => {
  expect(stripUri(uri)).toBe(told);
});

test.each([
  ['Not found: https://u:p@host/x?token=1#f', 'Not found: https://host/x'],
  ['"https://u:p@host/x?token=1", "y"', '"https://host/x", "y"'],
  ['see //u:p@host/x', 'see //host/x'],
  ['vault:secret?token=1 is unknown', 'vault:secret is unknown'],
  ['user idp:ada@example.com, is it 7:30? #3', 'user idp:ada@example.com, is it 7:30? #3'],
])('§21.1 URIs: in a sentence, %s', (text, told) => {
  expect(stripUrisIn(text)).toBe(told);
});

test('§21.1 URIs: no line of the log has one whole, whoever wrote it', () => {
  const { log, lines } = collectLog();
  const uri = 'https://u:SECRET@host/x?token=SECRET';
  log.warn(`No answer from ${uri}.`, { uri, list: [uri], cause: new Error(`${uri} failed`) });
  expect(lines).toMatchObject([
    { msg: 'No answer from https://host/x', uri: 'https://host/x', list: ['https://host/x'] },
  ]);
});
