// The last answer of a grant is given again: to a thief no longer, and no later, than to its client.
import { beforeEach, describe, expect, test } from 'vitest';
import { useShared } from '../../support/lifetimes.ts';
import { startBroker } from '../../support/oauth/broker.ts';
import { logInByCode, rotate } from './rotating-provider.ts';

describe('in proxy mode', () => {
  const broker = useShared(() => startBroker({ OAUTH_MODE: 'proxy' }));
  beforeEach(() => rotate(broker));

  /** The refresh tokens of a grant, the first one first. */
  async function logInAndRefreshTwice() {
    const { client, refreshToken: first } = await logInByCode(broker);
    broker.clock.advance(151_000);
    const { json: next } = await broker.steps.refresh(client, first);
    broker.clock.advance(151_000);
    const { json: last } = await broker.steps.refresh(client, next.refresh_token);
    return { client, first, last: last.refresh_token as string, earlierAccess: next.access_token };
  }

  test('§4.7 token: a thief who has the token before does not follow the client to its next ones', async () => {
    await rotate(broker, { expires_in: 600 });
    const { client, refreshToken } = await logInByCode(broker);
    broker.clock.advance(301_000);
    const { json } = await broker.steps.refresh(client, refreshToken);
    broker.clock.advance(11_000);
    broker.answer(400, { error: 'invalid_grant' });
    const asked = broker.asked();
    const { status } = await broker.steps.refresh(client, refreshToken);
    expect([status, broker.asked()]).toEqual([400, asked + 1]);
    expect((await broker.steps.refresh(client, json.refresh_token)).status).toBe(400);
  });

  test('§4.7 token: a refused replay of any token of a grant ends what was given last', async () => {
    const { client, first, last } = await logInAndRefreshTwice();
    expect((await broker.steps.refresh(client, last)).json.refresh_token).toBe(last);
    broker.clock.advance(11_000);
    broker.answer(400, { error: 'invalid_grant' });
    expect((await broker.steps.refresh(client, first)).status).toBe(400);
    expect((await broker.steps.refresh(client, last)).status).toBe(400);
  });

  test('§4.7 token: a refused replay of one grant ends no other', async () => {
    const { client, first } = await logInAndRefreshTwice();
    const other = await logInByCode(broker);
    broker.clock.advance(11_000);
    const { json } = await broker.steps.refresh(other.client, other.refreshToken);
    broker.answer(400, { error: 'invalid_grant' });
    expect((await broker.steps.refresh(client, first)).status).toBe(400);
    expect((await broker.steps.refresh(other.client, json.refresh_token)).status).toBe(200);
  });

  test.each(['first', 'earlierAccess'] as const)(
    '§4.7 revoke: a token of a grant that was long replaced ends what was given last: %s',
    async (which) => {
      const { client, last, ...tokens } = await logInAndRefreshTwice();
      broker.respond((res) => void res.writeHead(200).end());
      const form = { token: tokens[which], client_id: client.id };
      expect((await broker.steps.post('/oauth/revoke', form)).status).toBe(200);
      broker.answer(400, { error: 'invalid_grant' });
      expect((await broker.steps.refresh(client, last)).status).toBe(400);
    },
  );
});
