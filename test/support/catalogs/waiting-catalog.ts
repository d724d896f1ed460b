// Tools that go on for as long as the test says, and say what it wants meanwhile.
import { createLocalCatalog, defineTool } from '../../../src/index.ts';

export interface WaitingCall {
  progress(done: number, message?: string): void;
  log(data: unknown): void;
  disconnect(): void;
  answer(text: string): void;
  fail(message: string): void;
  readonly signal: AbortSignal;
}

/** `calls` has those under way, by the name that each was given. */
export function createWaitingCatalog() {
  const calls = new Map<string, WaitingCall>();
  const catalog = createLocalCatalog({
    logging: true,
    tools: [
      defineTool({
        name: 'wait',
        description: 'Waits until it is told to answer.',
        inputSchema: {
          type: 'object',
          properties: { name: { type: 'string' } },
          required: ['name'],
        },
        async run({ name }, context) {
          const text = await new Promise<string>((resolve, reject) => {
            calls.set(name, {
              progress: (done, message) => context.progress(done, undefined, message),
              log: (data) => context.log('info', data),
              disconnect: context.disconnect,
              answer: resolve,
              fail: (message) => reject(new Error(message)),
              signal: context.signal,
            });
          });
          return { content: [{ type: 'text', text }] };
        },
      }),
    ],
  });
  return { catalog, calls };
}
