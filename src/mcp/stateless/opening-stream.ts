// MCP 2026-07-28 "Subscriptions": the stream of a subscription that takes long to open, as servers are asked first. It
// begins before that, so that nobody on its way takes its silence for an end.
import type { ReplyStream, WaitingWatcher } from '../../endpoint/message.ts';
import { toSseEvent } from '../../platform/sse.ts';
import type { RequestId } from '../../protocol/json-rpc.ts';
import { renderResponse, type StreamResponse, toErrorAnswer } from '../calls/outcome.ts';
import type { EventChannel, KeepStream } from '../streaming/response-stream.ts';

type Events = AsyncIterator<string, undefined>;

/** For `ResponseStream.keep`. Whether it is needed shows while it opens. */
export class OpeningStream implements KeepStream, EventChannel, ReplyStream, Events {
  readonly canPrime = false;
  private readonly opened: Promise<Pick<StreamResponse, 'events'>>;
  private events: Promise<AsyncIterator<string>> | undefined;

  constructor(opening: Promise<StreamResponse>, id: RequestId) {
    this.opened = opening.catch((thrown: unknown) => ({
      events: tellError(renderResponse(toErrorAnswer(thrown), id).text),
    }));
  }

  get items(): ReplyStream {
    return this;
  }

  start(): EventChannel {
    return this;
  }

  begin(): void {}
  send(): void {}
  end(): void {}
  disconnect(): void {}

  watchWaiting(watcher: WaitingWatcher): void {
    void this.opened.then(({ events }) => events.watchWaiting?.(watcher));
  }

  [Symbol.asyncIterator](): Events {
    return this;
  }

  async next(): Promise<IteratorResult<string, undefined>> {
    const { done, value } = await (await this.open()).next();
    return done === true ? DONE : { done: false, value };
  }

  /** Whoever leaves before it is open ends it once it is. */
  async return(): Promise<IteratorResult<string, undefined>> {
    await (await this.open()).return?.();
    return DONE;
  }

  private open(): Promise<AsyncIterator<string>> {
    this.events ??= this.opened.then(({ events }) => events[Symbol.asyncIterator]());
    return this.events;
  }
}

const DONE = { done: true, value: undefined } as const;

async function* tellError(json: string): AsyncGenerator<string, undefined> {
  yield toSseEvent(json);
  return undefined;
}
