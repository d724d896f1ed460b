// §2: an author's catalogue may pass on the context of a call with some members of its own.
import { expect, test } from 'vitest';
import { createLocalCatalog, defineTool } from '../../../src/index.ts';
import type { Catalog, Context } from '../../../src/mcp/catalog/catalog.ts';
import { openClient } from '../../support/clients/session-client.ts';
import { useGateway } from '../../support/gateway/use-gateway.ts';

const local = createLocalCatalog({
  logging: true,
  tools: [
    defineTool({
      name: 'looks',
      description: 'Uses all that a context has.',
      inputSchema: { type: 'object' },
      async run(_args, context) {
        context.log('error', 'logged');
        context.progress(1);
        const answered = await context
          .ask({ name: { method: 'roots/list', params: {} } })
          .catch((error: unknown) => error);
        const seen = {
          sub: context.user?.sub,
          service: context.service.name !== '',
          client: context.client.roots,
          isAborted: context.signal.aborted,
          isRefused: answered instanceof Error,
          token: typeof (await context.providerToken()),
          era: context.relay.era,
          disconnect: typeof context.disconnect,
        };
        return { content: [{ type: 'text', text: JSON.stringify(seen) }] };
      },
    }),
  ],
});

/** As a catalogue does that passes calls on. */
async function passOn({ relay }: Context) {
  if (relay.era !== 'session') throw new Error('Not a session');
  const { ask } = relay;
  return { content: [{ type: 'text' as const, text: JSON.stringify(await ask(QUESTION)) }] };
}

const QUESTION = { method: 'roots/list', params: {} };

const catalog: Catalog = {
  ...local,
  async callTool(name, args, context) {
    if (args.isPassedOn === true) return passOn(context);
    const log: Context['log'] = (level, data) => context.log(level, `changed: ${data}`);
    return local.callTool(name, args, Object.create(context, { log: { value: log } }));
  },
};

const gateway = useGateway({ deps: { catalog } });

test('§2 a tool gets an object that was made from the context, and all else of it works', async () => {
  const client = await openClient(gateway, { protocolVersion: '2025-06-18' });
  const answer = await client.call('looks', {}, { progressToken: 1 });
  const messages = await answer.rest();
  expect(messages).toMatchObject([
    { method: 'notifications/message', params: { data: 'changed: logged' } },
    { method: 'notifications/progress', params: { progress: 1 } },
    { result: { content: [{ type: 'text' }] } },
  ]);
  expect(JSON.parse(messages.at(-1).result.content[0].text)).toMatchObject({
    sub: expect.any(String),
    service: true,
    client: false,
    isAborted: false,
    isRefused: true,
    era: 'session',
    disconnect: 'function',
  });
});

test('§2 a catalogue that passes calls on asks by the function that it took off the relay', async () => {
  const client = await openClient(gateway, { capabilities: { roots: {} } });
  const answer = await client.call('looks', { isPassedOn: true });
  const question = await answer.next();
  expect(question).toMatchObject(QUESTION);
  await client.answer(question.id, { roots: [] });
  const { result } = await answer.next();
  expect(JSON.parse(result.content[0].text)).toEqual({ result: { roots: [] } });
});
