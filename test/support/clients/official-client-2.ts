import { Client, type VersionNegotiationMode } from '@modelcontextprotocol/client';
import {
  ACCEPT,
  CAPABILITIES,
  CLIENT_INFO,
  commonMethodsOf,
  createNotes,
  type OfficialClient,
  SUMMARY,
} from './official-client.ts';
import { connect, createMemory } from './sdk-2-client.ts';

/** MCP 2026-07-28: logging is asked for by each request. */
const LOG_LEVEL = 'io.modelcontextprotocol/logLevel';

export async function connectOfficialClient2(
  url: URL,
  mode?: VersionNegotiationMode,
): Promise<OfficialClient> {
  const memory = createMemory();
  const notes = createNotes();
  const { client, transport } = await connect(url, memory, undefined, {
    newClient() {
      const created = new Client(CLIENT_INFO, {
        capabilities: CAPABILITIES,
        ...(mode !== undefined && { versionNegotiation: { mode } }),
      });
      created.setRequestHandler('elicitation/create', ({ params }) => {
        notes.asked.push(params.message);
        return ACCEPT;
      });
      created.setRequestHandler('sampling/createMessage', ({ params }) => {
        notes.asked.push(JSON.stringify(params.messages));
        return SUMMARY;
      });
      created.setNotificationHandler('notifications/message', ({ params }) => {
        notes.logged.push(params);
      });
      created.setNotificationHandler('notifications/resources/updated', ({ params }) => {
        notes.updated.push(params.uri);
      });
      return created;
    },
    fetch: notes.fetch,
  });
  return {
    ...notes,
    ...commonMethodsOf(client),
    ...(mode === undefined ? inSession(client) : stateless(client)),
    memory,
    version: client.getNegotiatedProtocolVersion(),
    sessionId: transport.sessionId,
    call: (name, args, options) => client.callTool({ name, arguments: args }, options),
  };
}

type OfEra = Pick<OfficialClient, 'callWithLog' | 'watch'>;

const inSession = (client: Client): OfEra => ({
  async callWithLog(name, level) {
    await client.setLoggingLevel(level);
    return client.callTool({ name });
  },
  async watch(uri) {
    await client.subscribeResource({ uri });
    return { end: () => client.unsubscribeResource({ uri }) };
  },
});

const stateless = (client: Client): OfEra => ({
  callWithLog: (name, level) => client.callTool({ name, _meta: { [LOG_LEVEL]: level } }),
  async watch(uri) {
    const subscription = await client.listen({ resourceSubscriptions: [uri] });
    return { end: () => subscription.close(), closed: subscription.closed };
  },
});
