// A server of the stateless era whose every word is marked: the official SDK 2.x.

import { toNodeHandler } from '@modelcontextprotocol/node';
import {
  completable,
  createMcpHandler,
  inputRequired,
  McpServer,
  ResourceTemplate,
} from '@modelcontextprotocol/server';
import { z } from 'zod';
import { SERVER_MARK, type SpeakingServer } from '../guards/speaking-server.ts';
import { listenOnLoopback } from '../upstreams/listen.ts';

const say = (words: string) => ({
  content: [{ type: 'text' as const, text: `${SERVER_MARK} ${words}` }],
});
const described = { description: SERVER_MARK };
const ANYTHING = { ...described, inputSchema: z.looseObject({}) };

/** What clients sent goes to `hear`. */
function createServer(hear: (sent: unknown) => void): McpServer {
  const server = new McpServer(
    { name: 'speaking', version: '2.0.0' },
    { capabilities: { logging: {} }, instructions: SERVER_MARK },
  );
  function hearAnd<Answer>(sent: unknown, answer: Answer): Answer {
    hear(sent);
    return answer;
  }
  server.registerTool('say', ANYTHING, (args) => hearAnd(args, say('said')));
  server.registerTool('fail', ANYTHING, (args) =>
    hearAnd(args, { ...say('failed'), isError: true }),
  );
  server.registerTool('tell', ANYTHING, async (args, { mcpReq }) => {
    hear(args);
    await mcpReq.log('error', SERVER_MARK);
    const progressToken = mcpReq._meta?.progressToken;
    if (progressToken !== undefined) {
      const params = { progressToken, progress: 1, message: SERVER_MARK };
      await mcpReq.notify({ method: 'notifications/progress', params });
    }
    return say('told');
  });
  server.registerTool('elicit', ANYTHING, (args, { mcpReq }) => {
    hear(args);
    if (mcpReq.inputResponses?.it !== undefined) return say('asked');
    const requestedSchema = z.object({ name: z.string().optional() });
    const it = inputRequired.elicit({ message: SERVER_MARK, requestedSchema });
    return inputRequired({ inputRequests: { it } });
  });
  server.registerPrompt(
    'prompt',
    {
      ...described,
      argsSchema: z.object({
        a: completable(z.string(), (given) => hearAnd(given, [SERVER_MARK])),
      }),
    },
    (args) =>
      hearAnd(args, {
        messages: [{ role: 'user', content: { type: 'text', text: SERVER_MARK } }],
      }),
  );
  server.registerResource('r', 'now://r', described, ({ href: uri }) =>
    hearAnd(uri, { contents: [{ uri, text: SERVER_MARK }] }),
  );
  const template = new ResourceTemplate('now://t/{id}', { list: undefined });
  server.registerResource('t', template, described, ({ href: uri }) =>
    hearAnd(uri, { contents: [{ uri, text: SERVER_MARK }] }),
  );
  return server;
}

export async function startSpeakingStateless(): Promise<SpeakingServer> {
  const heard: string[] = [];
  const hear = (sent: unknown) => void heard.push(JSON.stringify(sent));
  const handler = createMcpHandler(() => createServer(hear), { legacy: 'reject' });
  const handle = toNodeHandler(handler);
  const { url, close } = await listenOnLoopback((req, res) => {
    void handle(Object.assign(req, { method: req.method ?? '', url: req.url ?? '' }), res);
  });
  return { url, heard, close };
}
