// What the other tests of connections stand on: an official client logs in at the protected servers without a gateway.
import {
  Client,
  StreamableHTTPClientTransport,
  UnauthorizedError,
} from '@modelcontextprotocol/client';
import { expect, test } from 'vitest';
import { createMemory } from '../../support/clients/sdk-2-client.ts';
import { createBrowser } from '../../support/connections/browser.ts';
import { KEEPS_TO_MCP, ROTATING, WORKERS } from '../../support/connections/habits.ts';
import { startProtectedServer } from '../../support/connections/protected-server.ts';
import { REDIRECT_URI } from '../../support/gateway/service.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';

test.for(
  [KEEPS_TO_MCP, ROTATING, WORKERS].flatMap((habits) =>
    (['session', 'stateless'] as const).map((era) => [habits.title, era, habits] as const),
  ),
)(
  '§24 %s, %s era: an official client that logs in there calls as the account',
  async ([, era, habits]) => {
    const server = closeAfterTest(await startProtectedServer({ habits, era }));
    const client = await logInAt(server.url, era, 'grace');
    const { content } = await client.callTool({ name: 'whoami' });
    expect(content).toEqual([{ type: 'text', text: 'grace' }]);
    expect(server.calls()).toEqual(['grace']);

    server.spoilAccessTokens();
    expect((await client.callTool({ name: 'whoami' })).content).toEqual(content);
    expect(server.seen('token')).toHaveLength(2);
    await client.close();
  },
);

async function logInAt(at: string, era: string, account: string) {
  const memory = createMemory();
  const open = async () => {
    const client = new Client(
      { name: 'test', version: '1' },
      era === 'stateless' ? { versionNegotiation: { mode: { pin: '2026-07-28' } } } : {},
    );
    const transport = new StreamableHTTPClientTransport(new URL(at), { authProvider: memory });
    const connecting = client.connect(transport).then(() => client);
    return { transport, connecting };
  };
  const first = await open();
  await expect(first.connecting).rejects.toThrow(UnauthorizedError);
  const browser = createBrowser({ person: account });
  const back = await browser.openAsFar(memory.saved.authorizations.at(-1) ?? '', REDIRECT_URI);
  await first.transport.finishAuth(back.searchParams);
  return (await open()).connecting;
}
