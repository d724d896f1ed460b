// §28.1: what a line of a call says of its user, for replay.
import { expect, test } from 'vitest';
import { statelessRequest } from '../../support/clients/stateless.ts';
import { createAuditLog } from '../../support/gateway/audit-log.ts';
import { startForTest } from '../../support/upstreams/catalog-gateway.ts';
import { buildTool, serveForTest } from '../../support/upstreams/listing-server.ts';

const CLAIMS = {
  sub: 'ann',
  email: 'ann@x.example',
  groups: ['staff', 'ops'],
  department: { city: 'Bern', salary: 9 },
  phone: '0',
};

async function auditCall(env: Readonly<Record<string, string>>) {
  const audit = await createAuditLog();
  const wiki = await serveForTest({
    tools: [buildTool('read')],
    answers: { 'tools/call': () => ({ result: { content: [] } }) },
  });
  const rules = [
    { who: { groups: ['staff'] }, may: ['wiki__read'] },
    { when: "user.claims.department.city == 'Bern'", may: ['nothing'] },
    { who: { claims: { level: 1 } }, may: ['nothing'] },
  ];
  const gateway = await startForTest({
    file: { mcpServers: { wiki: { url: wiki.url } }, rules },
    env: { ...audit.env, ...env },
  });
  const token = await gateway.issuer.sign(CLAIMS);
  const { message, headers } = statelessRequest('tools/call', { name: 'wiki__read' });
  await gateway.request({
    method: 'POST',
    path: '/mcp',
    body: message,
    headers: { ...headers, authorization: `Bearer ${token}` },
  });
  return audit.lines().find(({ event }) => event === 'tool_call');
}

test('§28.1 AUDIT_CLAIMS: a line has what rules name of the user, null for what they do not have, and nothing else', async () => {
  const line = await auditCall({ AUDIT_CLAIMS: 'true' });
  expect(line?.who).toEqual({
    groups: ['staff', 'ops'],
    claims: { department: { city: 'Bern' }, level: null },
  });
});

test('§28.1 AUDIT_CLAIMS: without it a line says nothing of groups and claims', async () => {
  const line = await auditCall({});
  expect(line).toMatchObject({ user: 'ann', tool: 'wiki__read' });
  expect(line).not.toHaveProperty('who');
});
