// What a worker and the main process tell each other when the worker was asked for the metrics.
import { isObject } from '../../../platform/json.ts';

export interface WorkerMessage {
  /**
   * `merge`, to the main process: here is my text, I want that of all workers. It comes as `merged`.
   * `render`, to each other worker: I want your text. It comes as `rendered`.
   */
  readonly kind: 'merge' | 'merged' | 'render' | 'rendered';
  /** Chosen by who asks, and repeated in the answer. */
  readonly id: number;
  /** Empty in `render`. */
  readonly text: string;
}

export const isWorkerMessage = (message: unknown): message is WorkerMessage =>
  isObject(message) && typeof message.kind === 'string' && typeof message.text === 'string';
