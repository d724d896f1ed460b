// MCP 2026-07-28 "Subscriptions": the stream of a subscription that takes long to open, as servers are asked first. It
// begins before that, so that nobody on its way takes its silence for an end.
import type { ReplyStream } from '../../endpoint/message.ts';
import { toSseEvent } from '../../platform/sse.ts';
import type { RequestId } from '../../protocol/json-rpc.ts';
import { renderResponse, type StreamResponse, toErrorAnswer } from '../calls/outcome.ts';
import type { KeepStream } from '../streaming/response-stream.ts';

/** For `ResponseStream.keep`. Whether it is needed shows while it opens. */
export function createOpeningStream(opening: Promise<StreamResponse>, id: RequestId): KeepStream {
  return {
    canPrime: false,
    start: () => ({
      items: createItems(opening, id),
      // All that is sent comes of what opens.
      begin() {},
      send() {},
      end() {},
      disconnect() {},
    }),
  };
}

function createItems(opening: Promise<StreamResponse>, id: RequestId): ReplyStream {
  const opened: Promise<ReplyStream> = opening.then(
    ({ events }) => events,
    (thrown: unknown) => tellError(renderResponse(toErrorAnswer(thrown), id).text),
  );
  const reading = opened.then((events) => events[Symbol.asyncIterator]());
  return {
    watchWaiting: (watcher) => void opened.then((events) => events.watchWaiting?.(watcher)),
    [Symbol.asyncIterator]: () => ({
      next: async () => (await reading).next(),
      // A client that leaves before it is open ends it once it is.
      async return() {
        await (await reading).return?.();
        return { done: true, value: undefined };
      },
    }),
  };
}

async function* tellError(json: string): AsyncGenerator<string> {
  yield toSseEvent(json);
}
