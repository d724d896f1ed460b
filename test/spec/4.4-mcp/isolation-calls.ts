// Users who say things that nobody else may hear, under ids that all of them use.
import { createHash } from 'node:crypto';
import { setImmediate as turn } from 'node:timers/promises';
import { catalogue } from '../../../src/errors/catalogue.ts';
import { type Context, createLocalCatalog, defineTool } from '../../../src/index.ts';
import type { TestResponse } from '../../support/gateway/gateway.ts';
import type { Post } from './isolation-connections.ts';

export type Era = 'session' | 'stateless';

/** What a user sends calls by. */
export interface User {
  readonly sub: string;
  readonly token: string;
  readonly session: string;
  post(call: number): Post;
}

export interface Call {
  readonly number: number;
  readonly id: number | string;
  readonly era: Era;
  readonly tool: 'say-secret' | 'count';
}

const INPUT = {
  type: 'object',
  properties: { word: { type: 'string' }, turns: { type: 'integer' } },
  required: ['word', 'turns'],
} as const;

const secretOf = (sub: string): string => createHash('sha256').update(sub).digest('hex');

const textFor = (sub: string, word: string): string => `${sub} ${secretOf(sub)} ${word}`;

/** Answers come in another order than the calls. */
async function wait(turns: number): Promise<void> {
  for (let left = turns; left > 0; left -= 1) await turn();
}

const secretText = ({ user }: Context, word: string) => textFor(user?.sub ?? 'nobody', word);

export const secretCatalog = createLocalCatalog({
  tools: [
    defineTool({
      name: 'say-secret',
      description: 'Says who calls, and what was said.',
      inputSchema: INPUT,
      async run({ word, turns }, context) {
        await wait(turns);
        return { content: [{ type: 'text', text: secretText(context, word) }] };
      },
    }),
    defineTool({
      name: 'count',
      description: 'The same, and says it while it works, too.',
      inputSchema: INPUT,
      async run({ word, turns }, context) {
        for (const done of [1, 2, 3]) {
          context.progress(done, 3, secretText(context, word));
          await wait(turns);
        }
        return { content: [{ type: 'text', text: secretText(context, word) }] };
      },
    }),
  ],
});

const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
};

const wordOf = (sub: string, { number, era }: Call) => `${sub}-${era}-${number}`;

/** What is wrong with what `user` hears; undefined when nothing is. */
export async function checkCall(user: User, call: Call): Promise<string | undefined> {
  const { number, id, era, tool } = call;
  const heard = await postUntilServed(
    user.post(number),
    {
      authorization: `Bearer ${user.token}`,
      ...(tool === 'count' && { accept: 'application/json, text/event-stream' }),
      ...(era === 'session'
        ? { 'mcp-session-id': user.session }
        : {
            'mcp-protocol-version': '2026-07-28',
            'mcp-method': 'tools/call',
            'mcp-name': tool,
          }),
    },
    JSON.stringify({
      jsonrpc: '2.0',
      id,
      method: 'tools/call',
      params: {
        name: tool,
        arguments: { word: wordOf(user.sub, call), turns: (number * 7) % 5 },
        _meta: { ...(tool === 'count' && { progressToken: id }), ...(era === 'stateless' && META) },
      },
    }),
  );
  const expected = JSON.stringify(expectedBy(user, call));
  const got = JSON.stringify(messagesIn(heard).map(essence));
  return heard.status === 200 && got === expected
    ? undefined
    : `${user.sub}, ${era} ${JSON.stringify(id)}: ${heard.status} ${got}, not ${expected}`;
}

const OVERLOADED = catalogue.overloaded.details;

/** On a machine that is busy with something else some calls may be refused (§12): a client asks once more. */
async function postUntilServed(
  post: Post,
  ...request: Parameters<Post>
): Promise<Awaited<ReturnType<Post>>> {
  for (;;) {
    const heard = await post(...request);
    if (heard.status !== 503 || !heard.text.includes(OVERLOADED)) return heard;
    await turn();
  }
}

/** As JSON text: it tells 1 from "1". */
function expectedBy(user: User, call: Call): readonly unknown[] {
  const text = textFor(user.sub, wordOf(user.sub, call));
  const progress = call.tool === 'count' ? [1, 2, 3] : [];
  return [...progress.map((done) => ['progress', call.id, done, text]), ['answer', call.id, text]];
}

function messagesIn({ headers, text }: Omit<TestResponse, 'json'>): readonly Message[] {
  return headers['content-type'] === 'text/event-stream'
    ? [...text.matchAll(/^data: (.*)$/gm)].map(([, data = '']) => JSON.parse(data))
    : [JSON.parse(text)];
}

interface Message {
  readonly id?: unknown;
  readonly params?: Readonly<Record<string, unknown>>;
  readonly result?: { readonly content?: readonly { readonly text?: unknown }[] };
}

const essence = ({ id, params, result }: Message): readonly unknown[] =>
  params === undefined
    ? ['answer', id, result?.content?.[0]?.text]
    : ['progress', params.progressToken, params.progress, params.message];
