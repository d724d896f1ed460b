// §18.4: what a request says of the server as a whole. What one caller comes to concerns that caller: beyond connections that
// fail, only the gateway's own request decides that a server is down.
import type { HttpUpstreamConfig } from '../../config/file/gateway-file.ts';
import { knowsUsers } from '../credentials/needs-user.ts';
import { CredentialError, UpstreamError } from '../upstream.ts';
import type { Availability } from './availability.ts';
import { ConnectionError, isDownStatus, RefusalError } from './failures.ts';
import type { CallOutcome } from './server-call.ts';

export interface Judge {
  /** A request was answered. */
  noteOutcome(outcome: CallOutcome, isHandshake: boolean): void;
  /** A request had no answer. */
  noteFailure(failure: unknown): void;
  /** The server could not be spoken to at all, be it for this caller alone. */
  noteFailedHandshake(failure: unknown): void;
}

export function createJudge(config: HttpUpstreamConfig, availability: Availability): Judge {
  const isPersonal = knowsUsers(config);
  /** Of 401 and 403 nobody knows whom they concern, where users can be told apart. */
  const mayConcernAll = (status: number): boolean =>
    isDownStatus(status) || (status === 401 && !isPersonal);

  function noteFailure(failure: unknown): void {
    if (!(failure instanceof ConnectionError) || failure.isOwn) return;
    if (failure.isEverybodys) availability.noteDown(failure);
    // One connection that broke, or came to nothing while this process was busy.
    else availability.suspect();
  }

  return {
    noteOutcome(outcome, isHandshake) {
      const status = outcome.kind === 'refused' ? outcome.status : undefined;
      if (status !== undefined && mayConcernAll(status)) availability.suspect();
      else if (!isHandshake && status !== 401 && status !== 403) availability.noteUp();
    },
    noteFailure,
    noteFailedHandshake(failure) {
      if (failure instanceof ConnectionError) noteFailure(failure);
      else if (!(failure instanceof UpstreamError) || failure instanceof CredentialError) return;
      else if (isPersonal && failure instanceof RefusalError && !mayConcernAll(failure.status)) {
        return;
      } else if (isPersonal || availability.isUp === true) availability.suspect();
      // Nobody was served yet, and the server cannot tell callers apart.
      else availability.noteDown(failure);
    },
  };
}
