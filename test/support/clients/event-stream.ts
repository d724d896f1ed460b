// Answers of a listening gateway as they come: a stream event by event, or a plain body.
import { once } from 'node:events';
import { type Agent, type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http';

/** One event of a stream (WHATWG HTML §9.2). */
export interface ServerEvent {
  /** `message` where nothing is said. */
  readonly event: string;
  readonly data: string;
  readonly id?: string;
}

export interface EventStream extends AsyncIterable<ServerEvent> {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly isStream: boolean;
  /** The JSON of the next event that has any; undefined once the stream has ended. @throws when it breaks. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into messages of every shape
  next(): Promise<any>;
  /** The JSON of all events to the end. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into messages of every shape
  rest(): Promise<any[]>;
  /** The body of what is no stream. */
  text(): Promise<string>;
  hangUp(): void;
}

export interface Asked {
  readonly port: number;
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON. */
  readonly body?: unknown;
  /** Whose connection it takes; without it each has one of its own. */
  readonly agent?: Agent;
}

/** Resolves at the head of the answer. */
export async function openEvents(asked: Asked): Promise<EventStream> {
  const { port, method = 'POST', path = '/mcp', headers = {}, body, agent = false } = asked;
  const sent = request({
    host: '127.0.0.1',
    port,
    method,
    path,
    agent,
    headers: { ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
  });
  const answered = once(sent, 'response');
  sent.end(body === undefined ? undefined : JSON.stringify(body));
  const [answer] = (await answered) as [IncomingMessage];
  // Whoever hangs up does not want to hear of it; a reader hears from the answer.
  sent.on('error', () => {});
  const events = eventsOf(answer);

  async function next() {
    for (;;) {
      const { value } = await events.next();
      if (value?.data !== '') return value && JSON.parse(value.data);
    }
  }

  return {
    status: answer.statusCode ?? 0,
    headers: answer.headers,
    isStream: answer.headers['content-type'] === 'text/event-stream',
    next,
    async rest() {
      const all = [];
      for (let message = await next(); message !== undefined; message = await next()) {
        all.push(message);
      }
      return all;
    },
    async text() {
      answer.setEncoding('utf8');
      let text = '';
      for await (const chunk of answer) text += chunk;
      return text;
    },
    hangUp: () => void sent.destroy(),
    [Symbol.asyncIterator]: () => events,
  };
}

/** Events that end without an empty line are none (they were cut off). */
async function* eventsOf(
  answer: IncomingMessage,
): AsyncGenerator<ServerEvent, undefined, undefined> {
  let rest = '';
  for await (const chunk of answer.setEncoding('utf8')) {
    const blocks = `${rest}${chunk}`.split(/\r?\n\r?\n/);
    rest = blocks.pop() ?? '';
    for (const block of blocks) {
      const event = parseEvent(block);
      if (event !== undefined) yield event;
    }
  }
  return undefined;
}

/** Undefined for what has no data: comments only. */
function parseEvent(block: string): ServerEvent | undefined {
  const fields = block
    .split(/\r?\n/)
    .map((line) => /^([^:]*)(?:: ?(.*))?$/s.exec(line))
    .map((parts) => ({ name: parts?.[1] ?? '', value: parts?.[2] ?? '' }));
  const valuesOf = (name: string) =>
    fields.filter((field) => field.name === name).map(({ value }) => value);
  const data = valuesOf('data');
  if (data.length === 0) return undefined;
  const id = valuesOf('id').at(-1);
  return {
    event: valuesOf('event').at(-1) ?? 'message',
    data: data.join('\n'),
    ...(id !== undefined && { id }),
  };
}
