// Who is told of calls: counters, the audit log, traces.
import type { CallRecord } from './call-record.ts';

/** A row of the list of observers. None of them throws, but for `start`. */
export interface CallObserver {
  /** A message has come and can be understood; nothing has been done of it. */
  receive?(record: CallRecord): void;
  /** The limits let it through: it is answered from here on. */
  admit?(record: CallRecord): void;
  /** It is known what the call is about, and it is about to run. What rejects keeps it from running. */
  start?(record: CallRecord): Promise<void> | undefined;
  /** It has ended: `outcome` says how. */
  end?(record: CallRecord): void;
}

/** All observers as one, in their order. */
export const joinObservers = (observers: readonly CallObserver[]): Required<CallObserver> => ({
  receive(record) {
    for (const observer of observers) observer.receive?.(record);
  },
  admit(record) {
    for (const observer of observers) observer.admit?.(record);
  },
  start(record) {
    // Nearly always nobody has to be waited for.
    let waiting: Promise<void> | undefined;
    for (const { start } of observers) {
      const starting = start?.(record);
      if (starting !== undefined) waiting = waiting?.then(() => starting) ?? starting;
    }
    return waiting;
  },
  end(record) {
    for (const observer of observers) observer.end?.(record);
  },
});
