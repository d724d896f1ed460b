// A server whose every word is marked, of the session era: the official SDK 1.x.

import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import {
  CallToolRequestSchema,
  CompleteRequestSchema,
  GetPromptRequestSchema,
  ListPromptsRequestSchema,
  ListResourcesRequestSchema,
  ListResourceTemplatesRequestSchema,
  ListToolsRequestSchema,
  McpError,
  ReadResourceRequestSchema,
  SetLevelRequestSchema,
  SubscribeRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { z } from 'zod';
import { listenOnLoopback } from '../upstreams/listen.ts';

/** In all that the server says. */
export const SERVER_MARK = 'mark-of-the-server';
/** In all that the client says. */
export const CLIENT_MARK = 'mark-of-the-client';

export interface SpeakingServer {
  readonly url: string;
  /** Bodies of requests, oldest first. */
  readonly heard: readonly string[];
  close(): Promise<void>;
}

const text = (words: string) => ({ type: 'text' as const, text: `${SERVER_MARK} ${words}` });
const ANY = z.looseObject({});
const FORM = { type: 'object', properties: { name: { type: 'string' } } } as const;

const QUESTIONS = {
  elicit: {
    method: 'elicitation/create',
    params: { message: `${SERVER_MARK}?`, requestedSchema: FORM },
  },
  sample: {
    method: 'sampling/createMessage',
    params: { messages: [{ role: 'user', content: text('sample') }], maxTokens: 1 },
  },
  roots: { method: 'roots/list' },
} as const;

function createServer(): Server {
  const server = new Server(
    { name: 'speaking', version: '1.0.0' },
    {
      capabilities: {
        tools: {},
        prompts: {},
        resources: { subscribe: true },
        logging: {},
        completions: {},
      },
      instructions: `${SERVER_MARK} instructions`,
      enforceStrictCapabilities: false,
    },
  );
  const described = { description: `${SERVER_MARK} described` };
  server.setRequestHandler(ListToolsRequestSchema, () => ({
    tools: ['say', 'fail', 'broken', 'tell', 'url', ...Object.keys(QUESTIONS)].map((name) => ({
      name,
      ...described,
      inputSchema: { type: 'object' as const },
    })),
  }));
  server.setRequestHandler(ListPromptsRequestSchema, () => ({
    prompts: [{ name: 'prompt', ...described, arguments: [{ name: 'a' }] }],
  }));
  server.setRequestHandler(ListResourcesRequestSchema, () => ({
    resources: [{ name: 'r', uri: 'test://r', ...described }],
  }));
  server.setRequestHandler(ListResourceTemplatesRequestSchema, () => ({
    resourceTemplates: [{ name: 't', uriTemplate: 'test://t/{id}', ...described }],
  }));
  server.setRequestHandler(SetLevelRequestSchema, () => ({}));
  server.setRequestHandler(SubscribeRequestSchema, () => ({}));
  server.setRequestHandler(CompleteRequestSchema, () => ({
    completion: { values: [SERVER_MARK] },
  }));
  server.setRequestHandler(GetPromptRequestSchema, () => ({
    messages: [{ role: 'user', content: text('prompt') }],
  }));
  server.setRequestHandler(ReadResourceRequestSchema, ({ params: { uri } }) => ({
    contents: [{ uri, text: SERVER_MARK }],
  }));
  server.setRequestHandler(CallToolRequestSchema, async ({ params: { name } }, extra) => {
    if (name === 'fail') return { content: [text('failed')], isError: true };
    if (name === 'broken') throw new McpError(-32099, `${SERVER_MARK} broken`);
    if (name === 'url') {
      const elicitation = {
        mode: 'url',
        message: SERVER_MARK,
        url: `https://${SERVER_MARK}.example/`,
        elicitationId: 'e-1',
      };
      throw new McpError(-32042, 'Log in.', { elicitations: [elicitation] });
    }
    if (name === 'tell') {
      await extra.sendNotification({
        method: 'notifications/message',
        params: { level: 'error', data: SERVER_MARK },
      });
      const progressToken = extra._meta?.progressToken;
      if (progressToken !== undefined) {
        await extra.sendNotification({
          method: 'notifications/progress',
          params: { progressToken, progress: 1, message: SERVER_MARK },
        });
      }
    }
    const question = QUESTIONS[name as keyof typeof QUESTIONS];
    if (question === undefined) return { content: [text('said')] };
    const answer = await extra
      .sendRequest(question, ANY, { timeout: 60_000 })
      .catch((error: McpError) => ({ error: error.message }));
    return { content: [{ type: 'text', text: JSON.stringify(answer) }] };
  });
  return server;
}

export async function startSpeakingServer(): Promise<SpeakingServer> {
  const transports = new Map<string, StreamableHTTPServerTransport>();
  const heard: string[] = [];

  async function openSession(): Promise<StreamableHTTPServerTransport> {
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => void transports.set(id, transport),
    });
    await createServer().connect(transport);
    return transport;
  }

  async function handle(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const id = req.headers['mcp-session-id'];
    const known = typeof id === 'string' ? transports.get(id) : undefined;
    const transport = known ?? (await openSession());
    if (req.method !== 'POST') return transport.handleRequest(req, res);
    let body = '';
    for await (const piece of req.setEncoding('utf8')) body += piece;
    heard.push(body);
    return transport.handleRequest(req, res, JSON.parse(body));
  }

  const { url, close } = await listenOnLoopback((req, res) => {
    handle(req, res).catch(() => res.destroy());
  });
  return { url, heard, close };
}
