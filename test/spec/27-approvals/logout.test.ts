// §27.3: "for this session" is of one login: whoever logged an app out is asked again once it is back, in the same session, too.
import { expect, test } from 'vitest';
import { ARGS, rulesThatAsk, WRITE } from '../../support/approvals/asking-gateway.ts';
import { startFilesServer } from '../../support/approvals/files-server.ts';
import { clientOf, lastOf, openClient } from '../../support/clients/session-client.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { openAccount, readCsrf, readGrants } from '../../support/oauth/account-steps.ts';
import { startOwnTokens, toTokens } from '../../support/oauth/own-tokens.ts';
import { readFile } from '../../support/upstreams/gateway-file.ts';

test('§27.3 what was allowed for a session is asked about again after the login has ended, at each replica', async () => {
  const files = closeAfterTest(await startFilesServer());
  const file = await readFile({
    builtIn: false,
    mcpServers: { files: { url: files.url } },
    rules: rulesThatAsk('user'),
  });
  const own = closeAfterTest(await startOwnTokens({ isReplicated: true, deps: { file } }));
  const first = await own.logIn();
  const client = await openClient(own.gateway, {
    capabilities: { elicitation: {} },
    token: first.access,
  });
  const stream = await client.call(WRITE, ARGS);
  const { id } = await stream.next();
  await client.answer(id, { action: 'accept', content: { decision: 'session' } });
  expect((await lastOf(stream)).result.content[0].text).toBe('written');
  // A refresh is of the same login.
  const refreshed = toTokens(first.client, await own.refresh(first));
  const there = clientOf(await own.other.gateway.listen(), client.session, refreshed.access);
  expect((await lastOf(await there.call(WRITE, ARGS))).result.content[0].text).toBe('written');

  const { cookie } = await openAccount(own);
  const { text } = await own.steps.get('/account', cookie);
  const form = { csrf: readCsrf(text), action: 'end', grant: readGrants(text)[0] };
  expect((await own.steps.post('/account', form, cookie)).status).toBe(303);
  const back = await own.steps.redeem(first.client, await own.logInTo(first.client));
  const { access } = toTokens(first.client, back);
  for (const { gateway } of [own, own.other]) {
    const again = clientOf(await gateway.listen(), client.session, access);
    const asked = await again.call(WRITE, ARGS);
    expect((await asked.next()).method).toBe('elicitation/create');
    asked.hangUp();
  }
  expect(files.done).toHaveLength(2);
});
