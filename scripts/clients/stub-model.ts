// Stands in for a model: it asks for service_ping once, and then says that it is done. With it an
// agent's own command makes a real call, without a key.
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';

export interface StubModel {
  readonly url: string;
  close(): void;
}

const ARGUMENTS = { message: 'hello' };

export async function startStubModel(): Promise<StubModel> {
  const server = createServer(async (req, res) => {
    const body = await text(req);
    const [, answer] = APIS.find(([path]) => path.test(req.url ?? '')) ?? [];
    if (answer === undefined) {
      res.writeHead(404, { 'Content-Type': 'application/json' }).end('{}');
      return;
    }
    res.writeHead(200, { 'Content-Type': 'text/event-stream' });
    for (const event of answer(findToolToCall(body))) res.write(event);
    res.end();
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  return {
    url: `http://127.0.0.1:${port}`,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** The tool by the name that the client gave it; none when it has answered already. */
function findToolToCall(body: string): string | undefined {
  if (body.includes('Postern MCP Server: hello')) return undefined;
  return /"name":\s*"([\w.-]*service_ping)"/.exec(body)?.[1];
}

type RenderEvents = (tool: string | undefined) => readonly string[];

const APIS: readonly (readonly [path: RegExp, wire: RenderEvents])[] = [
  [/\/v1\/messages(\?|$)/, renderAnthropicEvents],
  [/\/chat\/completions$/, renderOpenAiEvents],
  [/:streamGenerateContent/, renderGeminiEvents],
];

function renderAnthropicEvents(tool: string | undefined): readonly string[] {
  const usage = { input_tokens: 1, output_tokens: 1 };
  const message = {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'stub',
    content: [],
    usage,
  };
  const block = tool
    ? { type: 'tool_use', id: 'toolu_1', name: tool, input: {} }
    : { type: 'text', text: '' };
  const delta = tool
    ? { type: 'input_json_delta', partial_json: JSON.stringify(ARGUMENTS) }
    : { type: 'text_delta', text: 'Done.' };
  const stop_reason = tool ? 'tool_use' : 'end_turn';
  const events = [
    { type: 'message_start', message },
    { type: 'content_block_start', index: 0, content_block: block },
    { type: 'content_block_delta', index: 0, delta },
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason, stop_sequence: null }, usage },
    { type: 'message_stop' },
  ];
  return events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
}

function renderOpenAiEvents(tool: string | undefined): readonly string[] {
  const call = { name: tool, arguments: JSON.stringify(ARGUMENTS) };
  const delta = tool
    ? { tool_calls: [{ index: 0, id: 'call_1', type: 'function', function: call }] }
    : { content: 'Done.' };
  const chunk = (choice: object) =>
    formatEvent({
      ...{ id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'stub' },
      choices: [{ index: 0, finish_reason: null, ...choice }],
    });
  return [
    chunk({ delta: { role: 'assistant', ...delta } }),
    chunk({ delta: {}, finish_reason: tool ? 'tool_calls' : 'stop' }),
    'data: [DONE]\n\n',
  ];
}

function renderGeminiEvents(tool: string | undefined): readonly string[] {
  const part = tool ? { functionCall: { name: tool, args: ARGUMENTS } } : { text: 'Done.' };
  const content = { role: 'model', parts: [part] };
  return [formatEvent({ candidates: [{ content, finishReason: 'STOP', index: 0 }] })];
}

const formatEvent = (value: object): string => `data: ${JSON.stringify(value)}\n\n`;
