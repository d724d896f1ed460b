// Servers of the official SDKs that keep their events, so that a stream can be read on; one session each.
import { randomUUID } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { NodeStreamableHTTPServerTransport } from '@modelcontextprotocol/node';
import { McpServer as McpServer1 } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { McpServer as McpServer2 } from '@modelcontextprotocol/server';
import { listenOnLoopback } from './listen.ts';

export interface ResumableServer {
  readonly url: string;
  readonly port: number;
  /** `begun`: the tool `slow` has told its first progress. `step`: it goes on, tells more, and ends. */
  readonly events: EventEmitter;
  /** Methods of HTTP, and the events after which streams were asked for. */
  readonly received: readonly { readonly method: string; readonly after: unknown }[];
  close(): Promise<void>;
}

const RETRY_MS = 500;
const SAID = { content: [{ type: 'text' as const, text: 'done' }] };

/** What the tools need of either SDK. */
interface ToolContext {
  tell(progress: number): Promise<void>;
  closeStream(): void;
}

function createTools(events: EventEmitter) {
  return {
    /** The connection is to be cut after `begun`. */
    async slow({ tell }: ToolContext) {
      await tell(1);
      const step = once(events, 'step');
      events.emit('begun');
      await step;
      await tell(2);
      return SAID;
    },
    /** The server closes the stream itself, and ends while nobody reads it. */
    async polled({ tell, closeStream }: ToolContext) {
      closeStream();
      await tell(1);
      return SAID;
    },
  };
}

/** Events of all streams in their order; a stream is replayed from one of them on. */
function createEventStore<Message>() {
  const stored: { readonly streamId: string; readonly message: Message }[] = [];
  return {
    async storeEvent(streamId: string, message: Message): Promise<string> {
      return `event-${stored.push({ streamId, message })}`;
    },
    async replayEventsAfter(
      lastEventId: string,
      { send }: { send(eventId: string, message: Message): Promise<void> },
    ): Promise<string> {
      const after = Number(lastEventId.slice('event-'.length));
      const streamId = stored[after - 1]?.streamId ?? '';
      for (const [at, event] of stored.entries()) {
        if (at >= after && event.streamId === streamId)
          await send(`event-${at + 1}`, event.message);
      }
      return streamId;
    },
  };
}

interface Transport {
  handleRequest(req: IncomingMessage, res: ServerResponse): Promise<void>;
}

type Open = (
  events: EventEmitter,
  keep: (sessionId: string, transport: Transport) => void,
) => Promise<Transport>;

async function serve(open: Open): Promise<ResumableServer> {
  const events = new EventEmitter();
  const received: { method: string; after: unknown }[] = [];
  const sessions = new Map<unknown, Transport>();
  const listening = await listenOnLoopback(async (req, res) => {
    received.push({ method: req.method ?? '', after: req.headers['last-event-id'] });
    const id = req.headers['mcp-session-id'];
    const known = sessions.get(id);
    const transport = known ?? (await open(events, (own, opened) => sessions.set(own, opened)));
    await transport.handleRequest(req, res).catch(() => res.destroy());
  });
  return { ...listening, events, received };
}

export const startResumableServer1 = (): Promise<ResumableServer> =>
  serve(async (events, keep) => {
    const server = new McpServer1({ name: 'resumable-1', version: '1' });
    for (const [name, run] of Object.entries(createTools(events))) {
      server.registerTool(name, {}, ({ _meta, sendNotification, closeSSEStream }) =>
        run({
          tell: (progress) =>
            sendNotification({
              method: 'notifications/progress',
              params: { progressToken: _meta?.progressToken ?? 0, progress },
            }),
          closeStream: () => closeSSEStream?.(),
        }),
      );
    }
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => keep(id, transport),
      eventStore: createEventStore(),
      retryInterval: RETRY_MS,
    });
    await server.connect(transport);
    return transport;
  });

export const startResumableServer2 = (): Promise<ResumableServer> =>
  serve(async (events, keep) => {
    const server = new McpServer2({ name: 'resumable-2', version: '1' });
    for (const [name, run] of Object.entries(createTools(events))) {
      server.registerTool(name, {}, ({ mcpReq, http }) =>
        run({
          tell: (progress) =>
            mcpReq.notify({
              method: 'notifications/progress',
              params: { progressToken: mcpReq._meta?.progressToken ?? 0, progress },
            }),
          closeStream: () => http?.closeSSE?.(),
        }),
      );
    }
    const transport = new NodeStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => keep(id, transport),
      eventStore: createEventStore(),
      retryInterval: RETRY_MS,
    });
    await server.connect(transport);
    return transport;
  });
