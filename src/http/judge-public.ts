// Judges what was sent to a limited endpoint for everybody: counted by its address first, so that
// judging cannot be asked for without end.
import type { ChosenLimit, PublicEndpoint } from '../core/endpoint.ts';
import { NO_BODY, type RequestBody } from '../core/message.ts';
import type { LimitCheck } from '../features/limits/limiter.ts';
import type { Caller } from '../features/limits/windows.ts';
import type { CountedRequest } from './exchange.ts';
import type { BodyReader } from './read-body.ts';
import type { ReceivedRequest } from './receive-request.ts';

/** @throws GatewayError while a refusal of the address is remembered. */
export type StartCheck = (chosen: ChosenLimit) => LimitCheck;

/** @throws GatewayError for what is not valid, which is counted apart. */
export type JudgePublic = (
  received: ReceivedRequest,
  endpoint: PublicEndpoint,
  startCheck: StartCheck,
) => Promise<CountedRequest>;

export const createJudgePublic = (readBody: BodyReader): JudgePublic =>
  async function judgePublic({ request, body }, endpoint, startCheck) {
    async function readAcceptedBody(): Promise<RequestBody> {
      const { body: accepts, maxBodyBytes: maxBytes } = endpoint;
      return accepts ? readBody(body, { accepts, owner: 'unauthenticated', maxBytes }) : NO_BODY;
    }

    const reading = endpoint.chooseLimit && readAcceptedBody();
    const early = await reading?.catch(() => undefined);
    const limits = startCheck(
      (early && endpoint.chooseLimit?.(early)) ?? { group: endpoint.limit },
    );
    await limits.countAddress();
    try {
      const read = await (reading ?? readAcceptedBody());
      const run = await endpoint.judge(request, read);
      return { limits, caller: SOMEBODY, access: undefined, run };
    } catch (thrown) {
      await limits.countInvalid();
      throw thrown;
    }
  };

/** Whoever sent something valid: users are not known here. */
const SOMEBODY: Caller = { kind: 'admitted', sub: undefined };
