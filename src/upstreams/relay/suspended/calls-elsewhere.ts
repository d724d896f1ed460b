// The side of the replica where a client's retry waits for a call that another replica began.
import { randomUUID } from 'node:crypto';
import type { Clock } from '../../../platform/clock.ts';
import { toRawMembers } from '../../../platform/noted-json.ts';
import type { Replicas } from '../../../store/replicas/replicas.ts';
import { UpstreamError } from '../../upstream.ts';
import type { RequestClient } from '../server-request.ts';
import type { CallOwner, Outcome, OutcomeRecords } from './outcome-records.ts';
import { readNotification, type SuspendedCallMessage } from './own-calls.ts';

export interface CallsElsewhereDeps {
  readonly clock: Clock;
  readonly records: OutcomeRecords;
  readonly replicas: Replicas<SuspendedCallMessage>;
}

/** A client's answer to a question of a call. */
export interface ClientReply extends CallOwner {
  readonly server: string;
  /** The replica that began the call. */
  readonly replica: string;
  readonly key: string;
  /** Undefined where the client left it out. */
  readonly answer: unknown;
}

export type Listener = Pick<RequestClient, 'signal' | 'progress' | 'log'>;

/**
 * Passes a reply on, and resolves to what the call comes to next; undefined when nobody knows the call any more.
 *
 * @throws StoreUnavailable; UpstreamError `aborted` when the client hangs up.
 */
export type WaitElsewhere = (
  reply: ClientReply,
  listener: Listener,
) => Promise<Outcome | undefined>;

/** How often the other replica is asked whether the call goes on: messages can be lost, and replicas end. */
const ASK_EVERY_MS = 2000;
const MAX_UNANSWERED = 3;

interface Wait {
  unanswered: number;
  /** The reply has arrived: it is not sent again. */
  hasArrived: boolean;
  readonly listener: Listener;
  settle(): void;
}

export function createWaitElsewhere({
  clock,
  records,
  replicas,
}: CallsElsewhereDeps): WaitElsewhere {
  const waits = new Map<string, Wait>();

  replicas.listen((message) => {
    const wait = waits.get(message.ticket);
    if (wait === undefined) return;
    switch (message.about) {
      case 'going_on':
        wait.unanswered = 0;
        wait.hasArrived = true;
        return;
      case 'settled':
        return wait.settle();
      case 'progress':
        return wait.listener.progress(readNotification(message.params));
      case 'log':
        return wait.listener.log(readNotification(message.params));
    }
  });

  return async function waitElsewhere(reply, listener) {
    const settled = await records.take(reply);
    if (settled !== undefined && !isAnsweredBy(reply, settled)) return settled;
    await waitForSettlement(reply, listener);
    return records.take(reply);
  };

  /** Also resolves when the other replica is gone. */
  function waitForSettlement(reply: ClientReply, listener: Listener): Promise<void> {
    const ticket = randomUUID();
    const { id: call, user, server, replica, key } = reply;
    const { answer } = toRawMembers({ answer: reply.answer });
    const from = replicas.ownName;
    const about = { about: 'resume', ticket, from, call, user, server } as const;
    const send = (message: SuspendedCallMessage) => replicas.send(message, replica);

    return new Promise((resolve, reject) => {
      let stopAsking = () => {};
      const wait: Wait = { unanswered: 0, hasArrived: false, listener, settle: () => end(resolve) };

      function askWhetherItGoesOn(): void {
        if (wait.unanswered === MAX_UNANSWERED) {
          wait.settle();
          return;
        }
        wait.unanswered += 1;
        // Where the store fails now, the next time or the look for the outcome says so.
        send(wait.hasArrived ? about : { ...about, key, answer }).catch(() => {});
        stopAsking = clock.after(ASK_EVERY_MS, askWhetherItGoesOn);
      }

      function leave(): void {
        send({ about: 'left', ticket, call }).catch(() => {});
        end(() => reject(new UpstreamError('aborted', 'the client hung up')));
      }

      function end(then: () => void): void {
        waits.delete(ticket);
        stopAsking();
        listener.signal.removeEventListener('abort', leave);
        then();
      }

      waits.set(ticket, wait);
      listener.signal.addEventListener('abort', leave);
      // Whoever hung up while the store was asked is not told again.
      if (listener.signal.aborted) leave();
      else askWhetherItGoesOn();
    });
  }
}

/** A question that was told twice, and is answered now. */
const isAnsweredBy = ({ key, answer }: ClientReply, outcome: Outcome): boolean =>
  outcome.kind === 'question' && outcome.key === key && answer !== undefined;
