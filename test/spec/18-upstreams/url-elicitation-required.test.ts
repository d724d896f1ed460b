// A server's error -32042 (URLElicitationRequired, MCP 2025-11-25): its user has to open a page before the call can go on.
import { expect, test } from 'vitest';
import { openClient } from '../../support/clients/session-client.ts';
import { CLIENT_CAPABILITIES, stateless } from '../../support/clients/stateless.ts';
import { useShared } from '../../support/lifetimes.ts';
import { startRelayGateway } from '../../support/upstreams/relay-gateway.ts';
import { startRelayServer1, URL_QUESTION } from '../../support/upstreams/relay-server-1.ts';

const server = useShared(startRelayServer1);
const gateway = useShared(() => startRelayGateway({ servers: { one: server.url } }));

const METHODS = [
  { method: 'tools/call', params: { name: 'one__url-required' } },
  { method: 'prompts/get', params: { name: 'one__url-required' } },
];
const ABLE = [{ elicitation: { url: {} } }, { elicitation: { form: {}, url: {} } }];
const UNABLE = [{}, { elicitation: {} }, { elicitation: { form: {} } }];

const askInSession = async (capabilities: object, { method, params }: (typeof METHODS)[number]) =>
  (await openClient(gateway, { capabilities })).ask(method, params);

const askStateless = async (capabilities: object, { method, params }: (typeof METHODS)[number]) => {
  const meta = { [CLIENT_CAPABILITIES]: capabilities };
  return (await stateless(gateway, method, params, { meta })).json;
};

const ERAS = [
  { era: 'session', ask: askInSession },
  { era: 'stateless', ask: askStateless },
];

test.each(ERAS.flatMap((era) => ABLE.map((capabilities) => ({ ...era, capabilities }))))(
  '§18.3 $era: a client that declared $capabilities gets it, with the name of the server for its user',
  async ({ ask, capabilities }) => {
    for (const what of METHODS) {
      const { error } = await ask(capabilities, what);
      expect(error).toEqual({
        code: -32042,
        message: expect.stringContaining('Log in first.'),
        data: {
          elicitations: [{ ...URL_QUESTION, message: 'one asks: Log in to A.' }],
          'x-more': 1,
        },
      });
    }
  },
);

test.each(ERAS.flatMap((era) => UNABLE.map((capabilities) => ({ ...era, capabilities }))))(
  '§18.3 $era: one that declared $capabilities gets a plain error that says what to do',
  async ({ ask, capabilities }) => {
    const [tool, prompt] = METHODS;
    const says = expect.stringMatching(
      /^one needs its user to open a page .* cannot .* Use a client that supports/,
    );
    const { result } = tool ? await ask(capabilities, tool) : {};
    expect(result).toMatchObject({ isError: true, content: [{ type: 'text', text: says }] });
    const { error } = prompt ? await ask(capabilities, prompt) : {};
    expect(error).toMatchObject({ code: -32603, message: says });
  },
);
