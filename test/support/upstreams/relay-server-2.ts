// A server of the stateless era that asks by its results: the official SDK 2.x.
import { toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, inputRequired, McpServer } from '@modelcontextprotocol/server';
import { z } from 'zod';
import { listenOnLoopback } from './listen.ts';
import { takeTurns } from './turns.ts';

export interface RelayServer2 {
  readonly url: string;
  close(): Promise<void>;
}

const FORM = z.object({ name: z.string() });

const said = (value: unknown) => ({
  content: [{ type: 'text' as const, text: JSON.stringify(value) }],
});

const elicit = (message: string) => inputRequired.elicit({ message, requestedSchema: FORM });

function createServer(): McpServer {
  const server = new McpServer(
    { name: 'relay-2', version: '2.0.0' },
    { capabilities: { logging: {} } },
  );
  server.registerTool('echo', {}, ({ mcpReq }) => said({ trace: mcpReq._meta?.traceparent }));
  const input = { inputSchema: z.object({ word: z.string(), turns: z.number() }) };
  server.registerTool('say', input, async ({ word, turns }) => {
    await takeTurns(turns);
    return { content: [{ type: 'text', text: word }] };
  });
  server.registerTool('count', input, async ({ word, turns }, { mcpReq }) => {
    for (const progress of [1, 2, 3]) {
      const progressToken = mcpReq._meta?.progressToken ?? 0;
      await mcpReq.notify({
        method: 'notifications/progress',
        params: { progressToken, progress, message: word },
      });
      await takeTurns(turns);
    }
    return { content: [{ type: 'text', text: word }] };
  });
  server.registerTool('ask', {}, ({ mcpReq: { inputResponses, requestState } }) =>
    inputResponses === undefined
      ? inputRequired({ inputRequests: { who: elicit('Who?') }, requestState: 'state-1' })
      : said({ inputResponses, requestState: requestState() }),
  );
  server.registerTool('ask-both', {}, ({ mcpReq: { inputResponses } }) =>
    inputResponses === undefined
      ? inputRequired({
          inputRequests: { one: elicit('One?'), other: inputRequired.listRoots() },
          requestState: 'both',
        })
      : said(inputResponses),
  );
  server.registerTool('rounds', {}, ({ mcpReq: { inputResponses, requestState } }) => {
    const state = requestState();
    const done = typeof state === 'string' ? state.split(',').length : 0;
    if (done === 2) return said({ inputResponses, requestState: state });
    return inputRequired({
      inputRequests: { [`round-${done}`]: elicit(`Round ${done}?`) },
      requestState: [...(done === 0 ? [] : [state]), `round-${done}`].join(','),
    });
  });
  server.registerTool('forever', {}, () =>
    inputRequired({ inputRequests: { again: elicit('Again?') } }),
  );
  server.registerTool('later', {}, ({ mcpReq: { requestState } }) =>
    requestState() === undefined ? inputRequired({ requestState: 'later' }) : said('now'),
  );
  server.registerTool('tell', {}, async ({ mcpReq }) => {
    await mcpReq.log('warning', { progress: 1 }, 'steps');
    const progressToken = mcpReq._meta?.progressToken;
    if (progressToken !== undefined) {
      await mcpReq.notify({
        method: 'notifications/progress',
        params: { progressToken, progress: 1, total: 2, message: 'step 1' },
      });
    }
    return said('told');
  });
  server.registerResource('cached', 'test://cached', {}, (uri) => ({
    contents: [{ uri: uri.href, text: 'read' }],
    ttlMs: 5000,
    cacheScope: 'public' as const,
  }));
  return server;
}

export async function startRelayServer2(): Promise<RelayServer2> {
  const handle = toNodeHandler(createMcpHandler(createServer, { legacy: 'reject' }));
  const { url, close } = await listenOnLoopback((req, res) => {
    void handle(Object.assign(req, { method: req.method ?? '', url: req.url ?? '' }), res);
  });
  return { url, close };
}
