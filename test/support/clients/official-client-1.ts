import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  LoggingMessageNotificationSchema,
  ResourceUpdatedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';
import {
  ACCEPT,
  CAPABILITIES,
  CLIENT_INFO,
  commonMethodsOf,
  createNotes,
  type OfficialClient,
  SUMMARY,
} from './official-client.ts';
import { connect, createMemory } from './sdk-1-client.ts';

export async function connectOfficialClient1(url: URL): Promise<OfficialClient> {
  const memory = createMemory();
  const notes = createNotes();
  const { client, transport } = await connect(url, memory, 'ada', {
    newClient() {
      const created = new Client(CLIENT_INFO, { capabilities: CAPABILITIES });
      created.setRequestHandler(ElicitRequestSchema, ({ params }) => {
        notes.asked.push(params.message);
        return ACCEPT;
      });
      created.setRequestHandler(CreateMessageRequestSchema, ({ params }) => {
        notes.asked.push(JSON.stringify(params.messages));
        return SUMMARY;
      });
      created.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => {
        notes.logged.push(params);
      });
      created.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => {
        notes.updated.push(params.uri);
      });
      return created;
    },
    fetch: notes.fetch,
  });
  const call: OfficialClient['call'] = (name, args, options) =>
    client.callTool({ name, arguments: args }, undefined, options);
  return {
    ...notes,
    ...commonMethodsOf(client),
    memory,
    version: transport.protocolVersion,
    sessionId: transport.sessionId,
    call,
    async callWithLog(name, level) {
      await client.setLoggingLevel(level);
      return call(name);
    },
    async watch(uri) {
      await client.subscribeResource({ uri });
      return { end: () => client.unsubscribeResource({ uri }) };
    },
  };
}
