// Judges what was sent to a limited endpoint for everybody: counted by its address first, so that
// judging cannot be asked for without end.
import type { PublicEndpoint } from '../core/endpoint.ts';
import { NO_BODY } from '../core/message.ts';
import type { LimitCheck } from '../features/limits/limiter.ts';
import type { Caller } from '../features/limits/windows.ts';
import type { CountedRequest } from './exchange.ts';
import type { BodyReader } from './read-body.ts';
import type { ReceivedRequest } from './receive-request.ts';

/** @throws GatewayError for what is not valid, which is counted apart. */
export type JudgePublic = (
  received: ReceivedRequest,
  endpoint: PublicEndpoint,
  limits: LimitCheck,
) => Promise<CountedRequest>;

export const createJudgePublic = (readBody: BodyReader): JudgePublic =>
  async function judgePublic({ request, body }, endpoint, limits) {
    await limits.countAddress();
    try {
      const { body: accepts, maxBodyBytes: maxBytes } = endpoint;
      const read = accepts
        ? await readBody(body, { accepts, owner: 'unauthenticated', maxBytes })
        : NO_BODY;
      const run = await endpoint.judge(request, read);
      return { limits, caller: SOMEBODY, access: undefined, run };
    } catch (thrown) {
      await limits.countInvalid();
      throw thrown;
    }
  };

/** Whoever sent something valid: users are not known here. */
const SOMEBODY: Caller = { kind: 'admitted', sub: undefined };
