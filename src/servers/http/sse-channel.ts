// MCP 2024-11-05 "HTTP with SSE": one stream with all that the server says; what it is told goes by POST to the address
// that the first event of the stream names.

import { readInitializeResult } from '../../mcp/upstream/description.ts';
import { toInitializeParams } from '../../mcp/upstream/envelope.ts';
import {
  type UpstreamCaller,
  type UpstreamDescription,
  UpstreamError,
} from '../../mcp/upstream/upstream.ts';
import type { Clock } from '../../platform/clock.ts';
import { RawJson, writeExactJson } from '../../platform/exact-json.ts';
import type { JsonObject } from '../../platform/json.ts';
import type { ServerNotification } from '../messages/server-message.ts';
import { createRpcConnection, type RpcConnection } from '../stdio/rpc-connection.ts';
import type { HttpLink } from './era.ts';
import type { ExchangeEnd } from './exchange.ts';
import { createInvalidError, toRefusal } from './failures.ts';
import type { HttpUpstreamConfig } from './http-config.ts';

export interface SseChannel {
  readonly rpc: RpcConnection;
  readonly description: UpstreamDescription;
  /** Resolves when the stream has ended. */
  readonly ended: Promise<void>;
  close(): void;
}

/** The listener to all that is no answer. */
interface SseListener {
  readonly caller: UpstreamCaller;
  onNotification(message: ServerNotification): void;
  onStrayAnswer(): void;
  /** An event came that is no message: of which call it is nobody can tell, so that it ends none. */
  onNoMessage(): void;
  /** A message was answered 401: by the server, or by what is behind it. */
  onUnauthorized(): void;
}

const HANDSHAKE_MS = 15_000;

/** @throws UpstreamError */
export async function openSseChannel(
  clock: Clock,
  { url, timeoutMs }: HttpUpstreamConfig,
  { connection, openCookies }: HttpLink,
  listener: SseListener,
): Promise<SseChannel> {
  const { caller } = listener;
  const session = { headers: [], cookies: openCookies() };
  const handshakeMs = Math.min(timeoutMs, HANDSHAKE_MS);
  let postPath: string | undefined;
  let isOver = false;
  let isInitialized = false;
  let stopStream = () => {};
  let tellEnd = () => {};
  const ended = new Promise<void>((resolve) => {
    tellEnd = resolve;
  });

  const rpc = createRpcConnection(clock, timeoutMs, true, {
    write(message) {
      if (postPath === undefined) return false;
      // A value that JSON cannot hold throws here, to the sender.
      const text = new RawJson(writeExactJson(message));
      connection.send(caller, text, session, postPath).then(
        (posted) => judgePost(message, posted),
        (error: unknown) => end(toSendError(error)),
      );
      return true;
    },
    onNotification: listener.onNotification,
    onStrayAnswer: listener.onStrayAnswer,
  });

  function take(value: unknown): number {
    const { isMessage, count } = rpc.receiveValue(value);
    if (!isMessage) listener.onNoMessage();
    return count;
  }

  /** The stream may still have to begin. */
  function stop(): void {
    isOver = true;
    stopStream();
  }

  function end(error: UpstreamError): void {
    stop();
    rpc.fail(error);
    tellEnd();
  }

  /** A message that the server does not take it does not answer either. */
  function judgePost({ id }: JsonObject, posted: ExchangeEnd): void {
    if (posted.kind === 'failed') end(posted.error);
    else if (posted.kind === 'refused' && isEnd(posted.status)) {
      end(toRefusal(posted));
    } else if (posted.kind === 'refused') {
      if (posted.status === 401) listener.onUnauthorized();
      rpc.receiveValue({ id });
    }
  }

  /** The session is gone, or the server itself refuses who comes: what `initialize` is answered is nobody's behind it. */
  const isEnd = (status: number): boolean => status === 404 || (status === 401 && !isInitialized);

  await new Promise<void>((resolve, reject) => {
    const cancelTimer = clock.after(handshakeMs, () => {
      stop();
      reject(new UpstreamError('timeout', 'it did not begin its stream'));
    });
    function settle(error: UpstreamError | undefined): void {
      cancelTimer();
      if (error === undefined) resolve();
      else {
        end(error);
        reject(error);
      }
    }
    const reader = {
      onNamedEvent(name: string, data: string) {
        if (name !== 'endpoint' || postPath !== undefined) return;
        postPath = findPath(data, url);
        settle(postPath === undefined ? createInvalidError(FOREIGN_ENDPOINT) : undefined);
      },
      onMessage: take,
      onNoJson: () => take(undefined),
      onEnd: (how: ExchangeEnd) => settle(toEndError(how)),
    };
    connection.stream(caller, session, reader).then((started) => {
      stopStream = started;
      if (isOver) started();
    }, reject);
  });

  try {
    const description = await initialize(rpc, caller, handshakeMs);
    isInitialized = true;
    return {
      rpc,
      description,
      ended,
      close: () => end(new UpstreamError('unavailable', 'it is no longer served')),
    };
  } catch (error) {
    stop();
    throw error;
  }
}

/** Credentials could not be had. */
const toSendError = (error: unknown): UpstreamError =>
  error instanceof UpstreamError
    ? error
    : new UpstreamError('unavailable', 'nothing can be sent to it', { cause: error });

const FOREIGN_ENDPOINT = 'it names an address elsewhere for what it is told';

/** Another origin could be anywhere, and must not get the credentials. */
function findPath(data: string, url: string): string | undefined {
  if (!URL.canParse(data, url)) return undefined;
  const { origin, pathname, search } = new URL(data, url);
  return origin === new URL(url).origin ? pathname + search : undefined;
}

function toEndError(end: ExchangeEnd): UpstreamError {
  if (end.kind === 'failed') return end.error;
  return end.kind === 'refused' ? toRefusal(end) : createInvalidError('it ended its stream');
}

async function initialize(
  rpc: RpcConnection,
  { capabilities }: UpstreamCaller,
  timeoutMs: number,
): Promise<UpstreamDescription> {
  const params = toInitializeParams(capabilities);
  const description = readInitializeResult(await rpc.ask('initialize', params, timeoutMs));
  if (description === undefined) {
    throw new UpstreamError('unavailable', 'it speaks no version of MCP that is known here');
  }
  rpc.notify('notifications/initialized', {});
  return description;
}
