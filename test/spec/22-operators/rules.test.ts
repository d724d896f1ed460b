// §22.4: what operators see of who may use what.
import { expect, test } from 'vitest';
import { specCatalog } from '../../support/catalogs/spec-catalog.ts';
import { createAuditLog } from '../../support/gateway/audit-log.ts';
import { type CatalogGateway, startForTest } from '../../support/upstreams/catalog-gateway.ts';
import { buildTool, serveForTest } from '../../support/upstreams/listing-server.ts';

const PATIENT = { timeout: 20_000 };
const env = { ADMIN_GROUPS: 'operators', ADMIN_CLIENTS: 'ops-script' };

async function showRules(gateway: CatalogGateway, query: string, sub = 'olga') {
  const token = await gateway.issuer.sign({ sub, groups: ['operators'], azp: 'ops-script' });
  const headers = { authorization: `Bearer ${token}` };
  return gateway.request({ path: `/admin/api/rules?${query}`, headers });
}

async function startWithRules(given: Readonly<Record<string, string>> = {}) {
  const server = await serveForTest({
    tools: ['read', 'write', 'delete'].map((name) => buildTool(name)),
  });
  const gateway = await startForTest({
    file: {
      mcpServers: {
        files: server.url,
        wiki: { url: server.url, auth: { type: 'identity' } },
      },
      rules: [
        { who: { groups: ['staff'] }, may: ['files__read'] },
        { who: { claims: { email: 'ann@example.com' } }, may: ['files__write'] },
        { who: { claims: { sub: 'olga' }, scopes: ['admin'] }, may: ['files__delete'] },
      ],
    },
    env: { ...env, ...given },
  });
  await gateway.listNames('tools/list');
  return gateway;
}

test.each([
  { query: 'group=guests&group=staff', seen: { files__read: 'allowed' } },
  { query: 'email=ann%40example.com', seen: { files__write: 'allowed' } },
  { query: 'user=olga', seen: { files__delete: 'scopes_missing' } },
  {
    query: 'user=olga&group=staff&email=ann%40example.com',
    seen: { files__read: 'allowed', files__write: 'allowed', files__delete: 'scopes_missing' },
  },
  { query: 'user=nobody', seen: {} },
])(
  '§22.4 operators: what somebody would see, and by which rule: $query',
  async ({ query, seen }) => {
    const gateway = await startWithRules();
    const { json } = await showRules(gateway, query);
    expect(json).toMatchObject({ total: 3, seen: Object.keys(seen).length, personal: ['wiki'] });
    for (const { name, decision, rule } of json.tools) {
      expect(decision).toBe(Reflect.get(seen, name) ?? 'denied');
      if (decision !== 'denied') expect(rule).toMatch(/rules/);
    }
  },
);

test('§22.4 operators: whoever is asked about, the next one is decided anew, and real callers as before', async () => {
  const gateway = await startWithRules();
  for (const [query, seen] of [
    ['group=staff', 1],
    ['user=nobody', 0],
  ] as const) {
    expect((await showRules(gateway, query)).json.seen).toBe(seen);
  }
  const token = await gateway.issuer.sign({ sub: 'nobody', groups: ['staff'] });
  expect(await gateway.listNames('tools/list', undefined, token)).toEqual(['files__read']);
});

test('§22.4 operators: the tools come in pages, and who was asked about is in the audit log', async () => {
  const audit = await createAuditLog();
  const gateway = await startWithRules(audit.env);
  const first = (await showRules(gateway, 'email=ann%40example.com&limit=2')).json;
  expect(first.tools).toHaveLength(2);
  const rest = (
    await showRules(gateway, `email=ann%40example.com&limit=2&cursor=${first.nextCursor}`)
  ).json;
  expect(rest.tools.map(({ name }: { name: string }) => name)).toEqual(['files__delete']);
  expect(audit.text()).toContain('rules of ann@example.com');
  expect((await showRules(gateway, 'limit=2')).status).toBe(400);
});

test('§22.4 operators: previews are worked out one at a time, only so many wait, and of one operator fewer', async () => {
  const begun: (() => void)[] = [];
  const gateway = await startForTest({
    file: { mcpServers: {}, rules: [{ who: 'everyone', may: ['*'] }] },
    builtIn: {
      ...specCatalog,
      async listTools(...asked) {
        await new Promise<void>((resolve) => begun.push(resolve));
        return specCatalog.listTools(...asked);
      },
    },
    env,
  });
  const refusals: Awaited<ReturnType<typeof showRules>>[] = [];
  async function show(operator: string) {
    const answer = await showRules(gateway, 'user=ann', operator);
    if (answer.status === 503) refusals.push(answer);
    return answer;
  }
  const own = Array.from({ length: 5 }, () => show('olga'));
  await expect.poll(() => refusals.length, PATIENT).toBe(1);
  const others = Array.from({ length: 20 }, (_, at) => show(`operator-${at}`));
  await expect.poll(() => refusals.length, PATIENT).toBe(4);
  for (const { headers, json } of refusals) {
    expect(headers['retry-after']).toBe('1');
    expect(json.error.data.details).toContain('Too many previews of rules');
  }
  expect(begun).toHaveLength(1);
  const ended = Promise.all([...own, ...others]);
  for (let at = 0; at < 21; at += 1) {
    await expect.poll(() => begun.length, PATIENT).toBe(at + 1);
    begun[at]?.();
  }
  const statuses = (await ended).map(({ status }) => status);
  expect(statuses.filter((status) => status === 200)).toHaveLength(21);
  expect(statuses.filter((status) => status === 503)).toHaveLength(4);
});
