// What a server, or its authorization server, says of itself is shown and used within bounds.
import { expect, test } from 'vitest';
import { connect, GO_ON } from '../../support/connections/connect-steps.ts';
import { startConnectingGateway } from '../../support/connections/connecting-gateway.ts';
import { KEEPS_TO_MCP, type ServerHabits } from '../../support/connections/habits.ts';
import { startProtectedServer } from '../../support/connections/protected-server.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';

async function start(habits: Partial<ServerHabits>, deps: { readonly fetch?: typeof fetch } = {}) {
  const server = closeAfterTest(
    await startProtectedServer({ habits: { ...KEEPS_TO_MCP, ...habits } }),
  );
  const gateway = closeAfterTest(
    await startConnectingGateway({ servers: { it: server.configure() }, deps }),
  );
  return { server, gateway };
}

test.for([
  ['turns the text around', 'https://login.example/\u202egnp.exe'],
  ['has another line', 'https://login.example/\n\u001b[31mYour account is locked'],
  ['is very long', `https://login.example/${'a'.repeat(200_000)}`],
])(
  '§24.2 an authorization server whose name %s is refused, and stands on no page so',
  async ([, issuer = '']) => {
    const { gateway } = await start({ resourceDocument: { authorization_servers: [issuer] } });
    const browser = gateway.createBrowser({ person: 'ada' });
    const page = await browser.press(
      await browser.open(`${gateway.baseUrl}/connections/it`),
      GO_ON,
    );
    expect(page.status).toBe(502);
    expect(page.text).toContain('visible ASCII');
    expect(page.text).not.toMatch(/[\u202e\u001b]|a{1000}/);
  },
);

test('§24.2 a server that asks for scopes without end: as many are asked for as an address can have', async () => {
  const resourceScopes = Array.from({ length: 90 }, (_, n) => `${'s'.repeat(150)}${n}`);
  const { server, gateway } = await start({ resourceScopes, namesMetadata: true });
  await connect(gateway, gateway.createBrowser({ person: 'ada', account: 'ada@work' }), 'it');
  const [asked] = server.seen('authorize');
  const scopes = asked?.query.get('scope')?.split(' ') ?? [];
  expect(scopes.length).toBeGreaterThan(10);
  expect(asked?.path.length).toBeLessThan(8000);
});

test('§24.2 a registration whose secret has ended when it comes is not made anew at each login', async () => {
  const endingSecrets: typeof fetch = async (input, init) => {
    const answer = await fetch(input, init);
    if (!String(input).endsWith('/register')) return answer;
    const registered = (await answer.json()) as object;
    return Response.json({ ...registered, client_secret_expires_at: 1 }, { status: 201 });
  };
  const { server, gateway } = await start({ clientAuth: ['post'] }, { fetch: endingSecrets });
  for (const person of ['ada', 'bob', 'eve'])
    await connect(gateway, gateway.createBrowser({ person, account: `${person}@work` }), 'it');
  expect(server.seen('register')).toHaveLength(1);
});
