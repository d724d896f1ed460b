// §18.3: what a process writes, told to whom it is for.
import { isObject, type JsonObject } from '../../../core/json.ts';
import { decodeUtf8 } from '../../../core/utf8.ts';
import { parseServerJson } from '../messages/parse-json.ts';
import { readCompletedElicitation } from '../messages/route-notification.ts';
import {
  readServerMessage,
  type ServerMessage,
  type ServerNotification,
} from '../messages/server-message.ts';
import { UpstreamError } from '../upstream.ts';
import { attribute } from './attribution.ts';
import type { Calls } from './calls.ts';
import type { Questions } from './questions.ts';

/** Takes a line of the process; false for what is no message. */
export type Receive = (line: Buffer) => boolean;

export interface ReceiveDeps {
  readonly calls: Calls;
  readonly questions: Questions;
  /** Whether all calls are of one user: only then messages that do not say whose they are are passed on. */
  readonly canAttribute: boolean;
  /** Whether a request of this id ended before it was answered; asked once. */
  takeForgotten(id: unknown): boolean;
  /** Any notification but of progress, log messages and cancellation. */
  onNotification(message: ServerNotification): void;
  /** An answer came that nobody waits for. */
  onStrayAnswer(): void;
}

export function createReceive(deps: ReceiveDeps): Receive {
  const { calls, questions, canAttribute, takeForgotten, onNotification, onStrayAnswer } = deps;

  const notified: Readonly<Record<string, (params: JsonObject) => void>> = {
    'notifications/progress'(params) {
      const call = calls.find(params.progressToken);
      call?.deadline.renew();
      call?.onProgress?.(params);
    },
    'notifications/message'(params) {
      if (!canAttribute) return;
      attribute(calls.list(), ({ onLog }) => onLog !== undefined)?.onLog?.(params);
    },
    'notifications/cancelled': ({ requestId }) => questions.cancel(requestId),
  };

  function isTakenByCall(message: ServerNotification): boolean {
    const elicitationId = readCompletedElicitation(message);
    if (elicitationId === undefined) return false;
    return calls.list().some((call) => call.onElicitationComplete?.(elicitationId));
  }

  function receiveAnswer(answer: Extract<ServerMessage, { kind: 'result' | 'error' }>): void {
    const call = calls.find(answer.id);
    if (call === undefined) {
      // An answer that crossed the cancellation is nobody's fault.
      if (!takeForgotten(answer.id)) onStrayAnswer();
    } else if (answer.kind === 'result') call.resolve(answer.result);
    else {
      const { error } = answer;
      call.reject(new UpstreamError('error', error.message, { jsonRpcError: error }));
    }
  }

  function receiveNotification(message: ServerNotification): void {
    const { method, params } = message;
    const receive = Object.hasOwn(notified, method) ? notified[method] : undefined;
    if (receive !== undefined) receive(params);
    else if (!isTakenByCall(message)) onNotification(message);
  }

  /** False for what is no message; where it answers a request all the same, that one fails. */
  function receiveValue(value: unknown): boolean {
    const message = readServerMessage(value);
    if (message === undefined) {
      const call = isObject(value) && !('method' in value) ? calls.find(value.id) : undefined;
      call?.reject(new UpstreamError('invalid', 'its answer is no message of MCP'));
      return false;
    }
    if (message.kind === 'request') questions.receive(message);
    else if (message.kind === 'notification') receiveNotification(message);
    else receiveAnswer(message);
    return true;
  }

  return function receive(line) {
    const value = parseLine(line);
    // A batch (2025-03-26), or one message.
    const messages = Array.isArray(value) ? value : [value];
    return messages.map(receiveValue).every((isMessage) => isMessage);
  };
}

function parseLine(line: Buffer): unknown {
  // Some runtimes begin their output with a byte order mark.
  const text = decodeUtf8(line)?.replace(/^\uFEFF/, '');
  return text === undefined ? undefined : parseServerJson(text)?.value;
}
