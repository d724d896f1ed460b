// Checks requests before they are counted, by token, body and message, or by what was sent; callers see no effect.

import { fail, type GatewayError, toGatewayError } from '../../errors/gateway-error.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { nameOwner } from '../../store/keys.ts';
import type { SessionLookup } from '../../store/store.ts';
import { addChallenge, type GetChallenge } from '../endpoint/bearer.ts';
import type {
  JudgedCall,
  ProtectedCall,
  ProtectedEndpoint,
  PublicEndpoint,
} from '../endpoint/endpoint.ts';
import {
  type GatewayRequest,
  getHeader,
  NO_BODY,
  type Reply,
  readBearerToken,
  type UserContext,
} from '../endpoint/message.ts';
import {
  type CountedCall,
  type CountedCaller,
  type LimitCheck,
  type Limiter,
  UNAUTHENTICATED,
} from '../limits/limiter.ts';
import { type IncomingExchange, inTrace } from './incoming-exchange.ts';
import { createBodyReader } from './read-body.ts';

/** Admits all callers, or refuses them. */
export interface CallerChecks {
  readonly limiter: Limiter;
  /**
   * §5; without required logins it admits every caller. Calls `beforeFetch` before it fetches a key or a grant.
   *
   * @throws GatewayError with a reason of §7.1.
   */
  authenticate(
    request: GatewayRequest,
    beforeFetch: () => Promise<void>,
  ): UserContext | undefined | Promise<UserContext | undefined>;
  /** Called with a token that is refused with 401, before its bearer gets the reply. Never rejects. */
  readonly noteRefusedToken?: ((token: string) => Promise<void>) | undefined;
  /** Reads the user again from its grant. Undefined if the gateway issues no tokens. */
  readonly reload?: ((user: UserContext) => Promise<UserContext>) | undefined;
  /** Undefined if no login is required. */
  readonly getChallenge?: GetChallenge | undefined;
}

/** A request that was checked; it is counted before it runs. */
interface CheckedRequest extends CountedCall {
  readonly limits: LimitCheck;
  run(session: SessionLookup): Reply | Promise<Reply>;
  renderFailure?: JudgedCall['renderFailure'];
  /** Set if the gateway's own token admitted the caller. */
  readonly granted: GrantedCall | undefined;
}

/** A call to check again if its grant has changed. */
interface GrantedCall {
  readonly endpoint: ProtectedEndpoint;
  readonly call: ProtectedCall;
  readonly version: string;
  readonly bodyRefusal: unknown;
}

/** If a body took this long, in milliseconds, its token may have expired in the meantime. */
const LATE_MS = 1000;

export function createRequestChecks(runtime: Runtime, checks: CallerChecks) {
  const { clock } = runtime;
  const { limiter, authenticate, noteRefusedToken, reload, getChallenge } = checks;
  const readBody = createBodyReader(runtime);

  /**
   * Checks the token, then the body, which is read only if the token is valid, then the message. The token determines which
   * windows count the call.
   *
   * @throws GatewayError if the endpoint is not offered, the token could not be checked, or a refusal by a limit is remembered. A
   * refused token is returned as a request that ends in 401.
   */
  async function checkProtected(
    exchange: IncomingExchange,
    endpoint: ProtectedEndpoint,
  ): Promise<CheckedRequest> {
    const { request, receivedAt } = exchange;
    endpoint.checkOffered?.(request);
    const limits = limiter.startCheck(endpoint.limit, request.clientIp);
    exchange.limits = limits;
    let token = await verifyToken(request, limits);
    if (token.refusal !== undefined) return refuseToken(request, limits, token.refusal);
    limits.checkRememberedRefusal(token.caller);
    let body = NO_BODY;
    let bodyRefusal: unknown;
    if (endpoint.body !== undefined) {
      try {
        // There is no user if no login is required.
        const { user } = token.caller;
        const owner = user === undefined ? 'authDisabled' : { user };
        body = await readBody(exchange, { accepts: endpoint.body, owner });
      } catch (thrown) {
        bodyRefusal = thrown;
      }
      if (clock.monotonic() - receivedAt > LATE_MS) token = await verifyToken(request, limits);
      if (token.refusal !== undefined) return refuseToken(request, limits, token.refusal);
    }
    const { caller, user } = token;
    const call: ProtectedCall = { request, user, body };
    const { access, run, renderFailure } = checkCall(endpoint, call, bodyRefusal);
    const { key: grantKey, version } = user?.grant ?? {};
    const granted = version === undefined ? undefined : { endpoint, call, version, bodyRefusal };
    return { limits, caller, access, grantKey, run, renderFailure, granted };
  }

  /**
   * Resolves to the caller as the token says, or to the 401 that the caller gets once no limit refuses the request first.
   *
   * @throws GatewayError if the token could not be checked; also the 429 of the address, if it is counted before.
   */
  async function verifyToken(request: GatewayRequest, limits: LimitCheck) {
    try {
      const user = await authenticate(request, () => limits.countAddress());
      const userMax = user?.grant?.maxCalls;
      const caller: CountedCaller = { kind: 'accepted', user: user && nameOwner(user), userMax };
      return { caller, user, refusal: undefined };
    } catch (thrown) {
      const refusal = toGatewayError(thrown);
      // Any other failure does not say who the token belongs to.
      if (refusal.row.status !== 401) throw refusal;
      return { caller: UNAUTHENTICATED, user: undefined, refusal };
    }
  }

  /** Counted like any other request, and refused once no limit does so first. */
  const refuseToken = (
    request: GatewayRequest,
    limits: LimitCheck,
    refusal: GatewayError,
  ): CheckedRequest => ({
    ...UNAUTHENTICATED_CALL,
    limits,
    granted: undefined,
    async run() {
      const token = readBearerToken(getHeader(request, 'authorization'));
      if (token !== undefined) await noteRefusedToken?.(token);
      throw refusal;
    },
  });

  /**
   * Checks what was sent to a limited endpoint without a login. Counts the address first, so that checks cannot be requested
   * endlessly.
   *
   * @throws GatewayError for an invalid request, which is counted separately, and while a refusal of the address is remembered.
   */
  async function checkPublic(
    exchange: IncomingExchange,
    endpoint: PublicEndpoint,
  ): Promise<CheckedRequest> {
    const { request } = exchange;
    const { body: accepts, maxBodyBytes: maxBytes } = endpoint;
    const read = async () =>
      accepts ? readBody(exchange, { accepts, owner: 'unauthenticated', maxBytes }) : NO_BODY;

    const reading = endpoint.chooseLimit && read();
    const early = await reading?.catch(() => undefined);
    const chosen = early && endpoint.chooseLimit?.(early, request);
    const group = chosen?.group ?? endpoint.limit;
    const limits = limiter.startCheck(group, request.clientIp, chosen?.login);
    exchange.limits = limits;
    await limits.countAddress();
    try {
      const body = await (reading ?? read());
      const judged = await inTrace(exchange, () => endpoint.judge(request, body));
      const [caller, run] =
        'runAnonymous' in judged ? [UNAUTHENTICATED, judged.runAnonymous] : [UNKNOWN_USER, judged];
      return { limits, caller, access: undefined, grantKey: undefined, run, granted: undefined };
    } catch (thrown) {
      await limits.countInvalid();
      throw thrown;
    }
  }

  /**
   * Runs a call whose grant has changed since this process read it: checks the message again for the user as it is now, since
   * checks have no effect. The subject never changes within a grant: the right windows have counted it, and the session is its own.
   *
   * @throws GatewayError `token_revoked`, or as the call.
   */
  async function runAgain(
    { endpoint, call, bodyRefusal }: GrantedCall,
    session: SessionLookup,
  ): Promise<Reply> {
    let { user } = call;
    try {
      user = (user && (await reload?.(user))) ?? fail('internal_error');
    } catch (thrown) {
      throw challenge(toGatewayError(thrown), call.request.path);
    }
    return checkCall(endpoint, { ...call, user }, bodyRefusal).run(session);
  }

  /** With the challenge of a 401 for this path. */
  const challenge = (error: GatewayError, path: string): GatewayError =>
    addChallenge(error, getChallenge?.(path));

  return { checkProtected, checkPublic, runAgain, challenge };
}

/** The sender of a valid request to a public endpoint, where users are not known. */
const UNKNOWN_USER: CountedCaller = { kind: 'accepted', user: undefined };

export const UNAUTHENTICATED_CALL: CountedCall = {
  caller: UNAUTHENTICATED,
  access: undefined,
  grantKey: undefined,
};

/** A refused body leaves nothing to check. */
function checkCall(
  endpoint: ProtectedEndpoint,
  call: ProtectedCall,
  bodyRefusal: unknown,
): JudgedCall {
  try {
    if (bodyRefusal !== undefined) throw bodyRefusal;
    return endpoint.judge(call);
  } catch (refusal) {
    return {
      access: undefined,
      run() {
        throw refusal;
      },
    };
  }
}
