// §18.4: what all servers share that this process reaches, whatever their transport.
import type { UpstreamRuntime } from '../upstream.ts';
import { type AnswerMemory, createAnswerMemory } from './answer-memory.ts';
import { createHeldStreams, type HeldStreams } from './held-streams.ts';
import { createMessagePace, type MessagePace } from './message-pace.ts';

export interface ProcessShare {
  readonly answerMemory: AnswerMemory;
  readonly messagePace: MessagePace;
  readonly heldStreams: HeldStreams;
  /** Other processes serve with the same store. */
  readonly hasReplicas: boolean;
  /** Whether a client's session goes on, whichever replica it was ended at; never rejects. */
  isSessionActive(sessionId: string): Promise<boolean>;
}

/** `serves` is false for a command, which is none of several replicas. */
export function openProcessShare(
  { config, clock, store }: Pick<UpstreamRuntime, 'config' | 'clock' | 'store'>,
  serves: boolean,
): ProcessShare {
  return {
    answerMemory: createAnswerMemory(clock, config.upstreams.maxBytes),
    messagePace: createMessagePace(clock),
    heldStreams: createHeldStreams(clock),
    hasReplicas: serves && store.isShared,
    // While the store cannot say, it does.
    async isSessionActive(sessionId) {
      try {
        const access = { sessionId, owner: undefined, slideSeconds: undefined };
        const { session } = await store.admitRequest([], access);
        return 'failure' in session || session.record !== undefined;
      } catch {
        return true;
      }
    },
  };
}
