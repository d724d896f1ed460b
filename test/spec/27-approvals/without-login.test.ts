// §27: gateways at which nobody can log in: who can be asked, and what the start says where nobody can.
import { expect, test } from 'vitest';
import { ARGS, rulesThatAsk, WRITE } from '../../support/approvals/asking-gateway.ts';
import { startFilesServer } from '../../support/approvals/files-server.ts';
import { ASKABLE, callTool } from '../../support/clients/stateless.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { startForTest } from '../../support/upstreams/catalog-gateway.ts';

const NO_LOGIN = { AUTH_REQUIRED: 'false' };

async function start(ask: 'user' | 'page' | 'operator', env: Readonly<Record<string, string>>) {
  const files = closeAfterTest(await startFilesServer());
  const file = { builtIn: false, mcpServers: { files: files.url }, rules: rulesThatAsk(ask) };
  return { files, gateway: await startForTest({ file, env }) };
}

test.for([
  ['without authentication', NO_LOGIN],
  ['with tokens of a provider', {}],
] as const)(
  '§27.3 %s: a client that has forms is asked, and one that has none is told what it needs',
  async ([, env]) => {
    const { files, gateway } = await start('user', env);
    const { json } = await callTool(gateway, WRITE, ARGS);
    expect(json.result.isError).toBe(true);
    expect(json.result.content[0].text).toContain('Use a client that supports elicitation');
    expect(json.result.content[0].text).not.toContain('http');
    const asked = await callTool(gateway, WRITE, ARGS, { meta: ASKABLE });
    expect(asked.json.result.inputRequests.approval.params.message).toContain('write_file');
    expect(files.done).toEqual([]);
  },
);

test.for([
  ['page', NO_LOGIN, '"ask": "page" needs OAUTH_MODE=broker'],
  ['page', {}, '"ask": "page" needs OAUTH_MODE=broker'],
  ['operator', NO_LOGIN, '"ask": "operator" needs to know who calls'],
  ['operator', {}, '"ask": "operator" needs ADMIN_GROUPS'],
] as const)('§27.1 "ask": "%s" with %j does not start: %s', async ([ask, env, says]) => {
  await expect(start(ask, env)).rejects.toThrow(says);
});
