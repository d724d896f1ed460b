// §27: calls that somebody has to agree to before they run: what they are bound to, and the requests for approval in the store.

import type { Config } from '../../config/config.ts';
import type { Problem } from '../../config/problem.ts';
import type { GuardConfig } from '../../mcp/calls/guards.ts';
import type { AskWhom, RuleConfig } from '../../mcp/calls/policy.ts';
import type { CancelSignal } from '../../platform/cancellation.ts';
import { parseExactJson, writeExactJson } from '../../platform/exact-json.ts';
import { generateSecret, hashSha256 } from '../../platform/ids.ts';
import { escapeInvisible } from '../../platform/invisible.ts';
import { isObject } from '../../platform/json.ts';
import { waitForOutcome } from '../../platform/single-flight.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import {
  APPROVAL_LIST_KEY,
  buildApprovalKey,
  buildApprovalRoundKey,
  buildApprovedCallKey,
  buildListedApprovalKey,
  buildSessionApprovalKey,
  buildUserApprovalsKey,
  OPERATOR_APPROVALS_KEY,
} from '../../store/keys.ts';
import { hashOwner, nameOwner } from '../../store/owner.ts';
import type { PageRequest, StoredPage } from '../../store/page.ts';
import { type Change, createRecords, jsonFormat, textFormat } from '../../store/records.ts';
import type { Replicas } from '../../store/replicas/replicas.ts';
import type { Owner } from '../../store/store.ts';

/** The subject of an approval: this call of this user by this client, exactly as it will be sent. */
export interface CallToApprove {
  /** Undefined without authentication: only a form can ask then. Users of `OIDC_ISSUER` have no issuer here. */
  readonly owner: Owner | undefined;
  readonly clientId: string | undefined;
  readonly view: string | undefined;
  /** `''` for the built-in catalogue. */
  readonly server: string;
  /** Named as the server does. */
  readonly tool: string;
  /** As clients of `/mcp` see it. */
  readonly name: string;
  /** RFC 8785. */
  readonly args: string;
  /** `_meta`, RFC 8785; undefined where the server gets none of the client's. */
  readonly meta: string | undefined;
  /** SHA-256 (hex) over the canonical form of server, tool, its definition, the arguments and `_meta`. */
  readonly digest: string;
}

/** Decides a request that is kept: its user at the page of approvals, or an operator. */
export type Approver = 'page' | 'operator';

export type ApprovalDecision = 'approved' | 'refused';

export interface ApprovalRequest extends CallToApprove {
  readonly owner: Owner;
  readonly id: string;
  readonly approver: Approver;
  readonly state: 'pending' | ApprovalDecision;
  /** Epoch milliseconds. */
  readonly createdAt: number;
  /** Epoch milliseconds: what is decided is good for as long again. */
  readonly expiresAt: number;
}

/** The decider, as the audit log names it. */
export interface DecidedBy {
  readonly kind: 'user' | 'operator' | 'guard';
  /** `sub`, or the name of the guard. */
  readonly name: string | undefined;
}

/** Told of all that happens: somebody was asked, has decided, or an approval is used, as the call runs. Never throws. */
export type NoteApproval = (
  call: CallToApprove,
  whom: AskedWhom,
  action: 'asked' | ApprovalDecision | 'used',
  by?: DecidedBy,
) => void;

/** The way in which somebody was asked. */
export type AskedWhom = 'form' | Approver;

/** The outcome of a round of questions (2026-07-28) in which a call was asked about. */
export interface ApprovalRound {
  /** `form`: its answer is the decision. `page`: the user was led there. `approved`: it goes on after other questions. */
  readonly kind: 'form' | 'page' | 'approved';
  /** The one whom the rules wanted to be asked: where they ask others by now, or at another path, it is good for nothing. */
  readonly whom: AskWhom;
  /** For `page`: the request. */
  readonly requestId?: string | undefined;
}

export type CallApprovals = ReturnType<typeof createCallApprovals>;

/** Arguments or `_meta` as people are shown them: one line for short ones, and nothing in them that is not seen. */
export const showJson = (canonical: string): string =>
  escapeInvisible(
    canonical.length <= SHORT ? canonical : writeExactJson(parseExactJson(canonical), 2),
  );

/** Characters. */
const SHORT = 80;

// Settings that rules which ask need.

/** Checks the file of a gateway that is about to serve. */
export function findAskProblems(
  {
    rules = [],
    guards = [],
  }: {
    readonly rules?: readonly RuleConfig[];
    readonly guards?: readonly Pick<GuardConfig, 'on'>[];
  },
  config: Pick<Config, 'auth' | 'admin' | 'oauth'>,
): readonly Problem[] {
  // Guards decide in place of operators.
  const hasDeciders =
    config.admin.groups.length > 0 || guards.some(({ on }) => on.includes('approval'));

  function findProblem(ask: AskWhom | undefined): string | undefined {
    if (ask === 'page' && !hasApprovalsPage(config))
      return '"ask": "page" needs OAUTH_MODE=broker: only then can users log in on the approvals page. Set it, or write "ask": "user".';
    // Clients that can ask need nothing else; the others are told so.
    if (ask !== 'operator') return undefined;
    if (!config.auth.required)
      return '"ask": "operator" needs to know who calls, and with AUTH_REQUIRED=false nobody logs in. Write "ask": "user".';
    return hasDeciders
      ? undefined
      : '"ask": "operator" needs ADMIN_GROUPS: without those groups there are no operators to decide. Set it, or write "ask": "user" or "page".';
  }

  return rules.flatMap(({ ask, place }) => {
    const message = findProblem(ask);
    return message === undefined ? [] : [{ place, message }];
  });
}

/** True if users can log in at the gateway, and so decide at a page of its own. */
export const hasApprovalsPage = ({ oauth }: Pick<Config, 'oauth'>): boolean =>
  oauth.mode === 'broker';

// §27: requests for approval, as the store has them: each bound to one user, client and call, decided once, used once.

/** Somebody has decided. */
export interface ApprovalMessage {
  readonly decided: string;
}

export const isApprovalMessage = (value: unknown): value is ApprovalMessage =>
  isObject(value) && typeof value.decided === 'string';

/** A request waits for so long, and what was decided is good for so long. */
const APPROVAL_SECONDS = 600;
/** A call waits for its decision. */
const WAIT_MS = 300_000;
/** For one session; no session is used for longer without a question. */
const SESSION_SECONDS = 28_800;
/** As long as the state of such a call is good (2026-07-28). */
const ROUND_SECONDS = 3600;

const MAX_OF_USER = 20;
const MAX_IN_ALL = 1000;

/** Each user and client, and what the call is: one that belongs to somebody else, or is another, has another name. */
const nameCall = ({ owner, clientId, digest }: CallToApprove) =>
  JSON.stringify([owner === undefined ? null : nameOwner(owner), clientId ?? null, digest]);

export function createCallApprovals(
  runtime: Runtime,
  replicas: Replicas<ApprovalMessage>,
  note: NoteApproval,
) {
  const { store, getSeal, clock } = runtime;
  const requests = createRecords(
    store,
    jsonFormat<ApprovalRequest>('A request for approval'),
    getSeal,
  );
  const allowances = createRecords(store, textFormat, getSeal);
  /** Each with the call that it is of: that of `nameCall`. */
  const rounds = createRecords(
    store,
    jsonFormat<ApprovalRound & { readonly call: string }>('A round of a call'),
    getSeal,
  );
  const listeners = new Set<(id: string) => void>();

  const tell = (id: string) => {
    for (const listener of [...listeners]) listener(id);
  };
  replicas.listen(({ decided }) => tell(decided));

  // The record of a request.

  const buildKey = (id: string) => buildApprovalKey(hashSha256(id));

  const isCurrent = (request: ApprovalRequest) => request.expiresAt > clock.now();

  /** Undefined where there is none of this id, or not any more. */
  async function find(id: string) {
    const request = await requests.get(buildKey(id));
    return request && isCurrent(request) ? request : undefined;
  }

  // The lists that it is in until it is decided.

  const listsOf = ({ id, owner, approver }: ApprovalRequest) => {
    const hash = hashSha256(id);
    return [
      [buildUserApprovalsKey(hashOwner(owner)), buildListedApprovalKey('user', hash)],
      [APPROVAL_LIST_KEY, buildListedApprovalKey('all', hash)],
      ...(approver === 'operator'
        ? [[OPERATOR_APPROVALS_KEY, buildListedApprovalKey('operators', hash)] as const]
        : []),
    ] as const;
  };

  async function readList(list: string, page: PageRequest): Promise<StoredPage<ApprovalRequest>> {
    const { items, next } = await store.readListed(list, page);
    const found = await Promise.all(items.map(({ value }) => find(value)));
    return { items: found.flatMap((one) => (one?.state === 'pending' ? [one] : [])), next };
  }

  async function create(
    call: CallToApprove & Pick<ApprovalRequest, 'owner'>,
    approver: Approver,
  ): Promise<ApprovalRequest> {
    const createdAt = clock.now();
    const expiresAt = createdAt + APPROVAL_SECONDS * 1000;
    const id = generateSecret();
    const request = { ...call, id, approver, state: 'pending', createdAt, expiresAt } as const;
    await requests.put(buildKey(request.id), request, APPROVAL_SECONDS);
    return request;
  }

  /**
   * False where one of them is full. Counted once it is added, so that many at the same moment count each other; that of the user
   * first, so that one user's many never stand in that of all.
   */
  async function addToLists(request: ApprovalRequest) {
    for (const [list, key] of listsOf(request)) {
      await store.setListed(list, key, request.id, APPROVAL_SECONDS);
      const max = list === APPROVAL_LIST_KEY ? MAX_IN_ALL : MAX_OF_USER;
      if (list !== OPERATOR_APPROVALS_KEY && (await store.countListed(list)) > max) return false;
    }
    return true;
  }

  const removeFromLists = async (request: ApprovalRequest) => {
    for (const [list, key] of listsOf(request)) await store.deleteListed(list, key);
  };

  return {
    /** The request under way for the call, or a new one; undefined where its user, or all together, have too many. */
    async request(call: CallToApprove & Pick<ApprovalRequest, 'owner'>, approver: Approver) {
      const key = buildApprovedCallKey(hashSha256(`${approver} ${nameCall(call)}`));
      for (;;) {
        const standing = await store.get(key);
        const known = standing === undefined ? undefined : await find(standing);
        // Whoever can write to the store could have it point elsewhere.
        if (known !== undefined && nameCall(known) === nameCall(call)) return known;
        const request = await create(call, approver);
        const isListed = await addToLists(request);
        // Many at the same moment all get the same.
        if (
          isListed &&
          (await store.compareAndSet(key, standing, request.id, 2 * APPROVAL_SECONDS))
        ) {
          note(request, approver, 'asked');
          return request;
        }
        await removeFromLists(request);
        await store.delete(buildKey(request.id));
        if (!isListed && (await store.get(key)) === standing) return undefined;
      }
    },
    find,
    /** The latest first. */
    async listOfUser(owner: Owner) {
      const list = buildUserApprovalsKey(hashOwner(owner));
      return (await readList(list, { from: undefined, limit: MAX_OF_USER })).items;
    },
    /** Those that operators decide, the latest first. */
    listForOperators: (page: PageRequest) => readList(OPERATOR_APPROVALS_KEY, page),
    /** The request as it is then; undefined where there is none that waits. Of two decisions the first counts. */
    async decide(id: string, decision: ApprovalDecision, by: DecidedBy) {
      const decided = await requests.update(
        buildKey(id),
        (request): Change<ApprovalRequest, ApprovalRequest | undefined> => {
          if (request?.state !== 'pending' || !isCurrent(request)) return { result: undefined };
          const expiresAt = clock.now() + APPROVAL_SECONDS * 1000;
          const value = { ...request, state: decision, expiresAt };
          return { value, ttlSeconds: APPROVAL_SECONDS, result: value };
        },
      );
      if (decided === undefined) return undefined;
      await removeFromLists(decided);
      note(decided, decided.approver, decision, by);
      tell(id);
      // Whoever waits elsewhere looks now and then by itself, too.
      replicas.send({ decided: id }).catch(() => {});
      return decided;
    },
    /** True for one of many at the same moment, and for this call alone: it may run, once. */
    async take(id: string, call: CallToApprove) {
      const request = await requests.take(
        buildKey(id),
        (one) => one.state === 'approved' && isCurrent(one) && nameCall(one) === nameCall(call),
      );
      if (request === undefined) return false;
      note(request, request.approver, 'used');
      return true;
    },
    /** `pending`: nobody has decided in time, or nobody waits any more. `gone`: it has been used, or is too old. */
    wait: (id: string, signal: CancelSignal) =>
      waitForOutcome<ApprovalDecision | 'pending' | 'gone'>({
        async look() {
          const request = await find(id);
          if (request === undefined) return 'gone';
          return request.state === 'pending' ? undefined : request.state;
        },
        listen(check) {
          const listener = (decided: string) => {
            if (decided === id) check();
          };
          listeners.add(listener);
          return () => void listeners.delete(listener);
        },
        late: 'pending',
        waitMs: WAIT_MS,
        signal,
        clock,
      }),

    /** The same call runs in this session without a question from now on. `session` names it, and the login. */
    async allowInSession(session: string, call: CallToApprove) {
      await allowances.create(buildSessionKey(session, call), ALLOWED, SESSION_SECONDS);
    },
    isAllowedInSession: async (session: string, call: CallToApprove) =>
      (await allowances.get(buildSessionKey(session, call))) === ALLOWED,

    /** The secret by which the next round is known. */
    async beginRound(call: CallToApprove, round: ApprovalRound) {
      const secret = generateSecret();
      const seconds = round.kind === 'approved' ? ROUND_SECONDS : APPROVAL_SECONDS;
      await rounds.create(buildRoundKey(secret), { ...round, call: nameCall(call) }, seconds);
      return secret;
    },
    /** For one of many at the same moment; undefined for all others, for another call, and when it is too late. */
    async takeRound(secret: string, call: CallToApprove): Promise<ApprovalRound | undefined> {
      const kept = await rounds.take(buildRoundKey(secret));
      if (kept === undefined) return undefined;
      const { call: named, ...round } = kept;
      return named === nameCall(call) ? round : undefined;
    },
  };
}

const ALLOWED = 'allowed';

const buildSessionKey = (session: string, call: CallToApprove) =>
  buildSessionApprovalKey(hashSha256(JSON.stringify([session, nameCall(call)])));

const buildRoundKey = (secret: string) => buildApprovalRoundKey(hashSha256(secret));
