// A server whose tools tell what they were called with: the official SDK 2.x, stateless.
import { toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, inputRequired, McpServer } from '@modelcontextprotocol/server';
import { z } from 'zod';
import { listenOnLoopback } from '../upstreams/listen.ts';

export interface FilesServer {
  readonly url: string;
  /** What tools were called with and did, oldest first. */
  readonly done: readonly string[];
  /** `_meta` of the calls of `write_file`, without what the gateway writes itself. */
  readonly metas: readonly object[];
  /** From now on `write_file` says another thing of itself. */
  redescribe(description: string): void;
  close(): Promise<void>;
}

const say = (text: string) => ({ content: [{ type: 'text' as const, text }] });

export async function startFilesServer(): Promise<FilesServer> {
  const done: string[] = [];
  const metas: object[] = [];
  let description = 'Writes a file.';
  const input = { inputSchema: z.looseObject({ path: z.string() }) };

  function createServer(): McpServer {
    const server = new McpServer({ name: 'files', version: '1.0.0' });
    server.registerTool(
      'write_file',
      { ...input, description },
      (args, { mcpReq: { _meta = {} } }) => {
        done.push(JSON.stringify(args));
        const own = Object.entries(_meta).filter(([key]) => !key.startsWith('io.model'));
        metas.push(Object.fromEntries(own));
        return say('written');
      },
    );
    server.registerTool('read_file', input, ({ path }) => say(`read ${path}`));
    // It asks its user before it does something.
    server.registerTool('copy_file', input, (args, { mcpReq: { inputResponses } }) => {
      if (inputResponses === undefined) {
        const question = inputRequired.elicit({
          message: 'Where to?',
          requestedSchema: { type: 'object', properties: { name: { type: 'string' } } },
        });
        return inputRequired({ inputRequests: { approval: question }, requestState: 'copying' });
      }
      done.push(JSON.stringify([args, inputResponses]));
      return say('copied');
    });
    return server;
  }

  const handle = toNodeHandler(createMcpHandler(createServer, { legacy: 'reject' }));
  const { url, close } = await listenOnLoopback((req, res) => {
    void handle(Object.assign(req, { method: req.method ?? '', url: req.url ?? '' }), res);
  });
  return {
    url,
    done,
    metas,
    redescribe(next) {
      description = next;
    },
    close,
  };
}
