// §27: approvals: the call that each is bound to, and requests for approval in the store.

import type { Config } from '../../config/config.ts';
import type { Problem } from '../../config/problem.ts';
import type { GuardConfig } from '../../mcp/calls/guards.ts';
import type { AskWhom } from '../../mcp/calls/policy.ts';
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
  hashOwner,
  nameOwner,
  OPERATOR_APPROVALS_KEY,
} from '../../store/keys.ts';
import type { PageRequest, StoredPage } from '../../store/page.ts';
import { type Change, createRecords, jsonFormat, textFormat } from '../../store/records.ts';
import type { Replicas } from '../../store/replicas/replicas.ts';
import type { Owner } from '../../store/store.ts';
import type { RuleConfig } from '../rules/rules.ts';

/** The subject of an approval: one call of one user and client, exactly as it will be sent. */
export interface CallToApprove {
  /** Undefined without authentication, where only a form can ask. Users of `OIDC_ISSUER` have no issuer here. */
  readonly owner: Owner | undefined;
  readonly clientId: string | undefined;
  readonly view: string | undefined;
  /** `''` for the built-in catalogue. */
  readonly server: string;
  /** The server's own name of the tool. */
  readonly tool: string;
  /** As clients of `/mcp` see it. */
  readonly name: string;
  /** RFC 8785. */
  readonly args: string;
  /** `_meta`, RFC 8785; undefined if none of the client's is sent. */
  readonly meta: string | undefined;
  /** SHA-256 (hex) over the canonical form of server, tool, its definition, the arguments and `_meta`. */
  readonly digest: string;
}

/** The decider of a stored request: its user at the approvals page, or an operator. */
export type Approver = 'page' | 'operator';

export type ApprovalDecision = 'approved' | 'refused';

export interface ApprovalRequest extends CallToApprove {
  readonly owner: Owner;
  readonly id: string;
  readonly approver: Approver;
  readonly state: 'pending' | ApprovalDecision;
  /** Epoch milliseconds. */
  readonly createdAt: number;
  /** Epoch milliseconds: a decision extends it once. */
  readonly expiresAt: number;
}

/** The decider, as the audit log names it. */
export interface DecidedBy {
  readonly kind: 'user' | 'operator' | 'guard';
  /** `sub`, or the name of the guard. */
  readonly name: string | undefined;
}

/** Records each step: asked, decided, used. Never throws. */
export type NoteApproval = (
  call: CallToApprove,
  whom: AskedWhom,
  action: 'asked' | ApprovalDecision | 'used',
  by?: DecidedBy,
) => void;

/** How the approval was requested. */
type AskedWhom = 'form' | Approver;

/** The approval state of a multi round-trip call (2026-07-28). */
export interface ApprovalRound {
  /** `form`: its answer is the decision. `page`: the user was led there. `approved`: only other requests are open. */
  readonly kind: 'form' | 'page' | 'approved';
  /** The approver that the rules required: invalid if they now require another, or do so on another path. */
  readonly whom: AskWhom;
  /** For `page`: the request. */
  readonly requestId?: string | undefined;
}

export type CallApprovals = ReturnType<typeof createCallApprovals>;

/** Arguments or `_meta` for people: short ones on one line, without invisible characters. */
export const showJson = (canonical: string): string =>
  escapeInvisible(
    canonical.length <= SHORT ? canonical : writeExactJson(parseExactJson(canonical), 2),
  );

/** Characters. */
const SHORT = 80;

// Settings required by rules with `ask`.

/** Validates the file of a gateway that is about to serve. */
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
  // Guards decide instead of operators.
  const hasDeciders =
    config.admin.groups.length > 0 || guards.some(({ on }) => on.includes('approval'));

  function findProblem(ask: AskWhom | undefined): string | undefined {
    if (ask === 'page' && !hasApprovalsPage(config))
      return '"ask": "page" needs OAUTH_MODE=broker: only then can users log in on the approvals page. Set it, or write "ask": "user".';
    // Clients with forms need nothing else; others get an error that says so.
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

/** True if users can log in to the gateway, and therefore use its approvals page. */
export const hasApprovalsPage = ({ oauth }: Pick<Config, 'oauth'>): boolean =>
  oauth.mode === 'broker';

// §27: stored requests for approval: each bound to one user, client and call, decided once, used once.

/** Between replicas: a request was decided. */
export interface ApprovalMessage {
  readonly decided: string;
}

export const isApprovalMessage = (value: unknown): value is ApprovalMessage =>
  isObject(value) && typeof value.decided === 'string';

/** Time to live of a request, and again of its decision. */
const APPROVAL_SECONDS = 600;
/** Time to live of an approval for a session. */
const SESSION_SECONDS = 28_800;
/** The lifetime of the request state of such a call (2026-07-28). */
const ROUND_SECONDS = 3600;

const MAX_OF_USER = 20;
const MAX_IN_ALL = 1000;

/** Identifies user, client and call. */
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
  /** Each is bound to a call, by `nameCall`. */
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

  /** Undefined if unknown or expired. */
  async function find(id: string) {
    const request = await requests.get(buildKey(id));
    return request && isCurrent(request) ? request : undefined;
  }

  // The lists of open requests.

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
   * False if a list is full. Counts after adding, so that concurrent requests count each other; the user's list first, so that
   * one user cannot fill the list of all users.
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
    /** The open request for the call, or a new one; undefined if its user, or all users, have too many. */
    async request(call: CallToApprove & Pick<ApprovalRequest, 'owner'>, approver: Approver) {
      const key = buildApprovedCallKey(hashSha256(`${approver} ${nameCall(call)}`));
      for (;;) {
        const standing = await store.get(key);
        const known = standing === undefined ? undefined : await find(standing);
        // Not trusted: a writer to the store could point it to another request.
        if (known !== undefined && nameCall(known) === nameCall(call)) return known;
        const request = await create(call, approver);
        const isListed = await addToLists(request);
        // Concurrent calls share one request.
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
    /** Latest first. */
    async listOfUser(owner: Owner) {
      const list = buildUserApprovalsKey(hashOwner(owner));
      return (await readList(list, { from: undefined, limit: MAX_OF_USER })).items;
    },
    /** For operators, latest first. */
    listForOperators: (page: PageRequest) => readList(OPERATOR_APPROVALS_KEY, page),
    countForOperators: () => store.countListed(OPERATOR_APPROVALS_KEY),
    /** The decided request; undefined if none is open. The first decision counts. */
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
      // Best effort: waiting calls on other replicas also poll.
      replicas.send({ decided: id }).catch(() => {});
      return decided;
    },
    /** Atomic: true once, and for this call only, which may then run. */
    async take(id: string, call: CallToApprove) {
      const request = await requests.take(
        buildKey(id),
        (one) => one.state === 'approved' && isCurrent(one) && nameCall(one) === nameCall(call),
      );
      if (request === undefined) return false;
      note(request, request.approver, 'used');
      return true;
    },
    /** `onPending` is called whenever it is found to be undecided. `pending`: timeout, or aborted. `gone`: used or expired. */
    wait: (id: string, waitMs: number, signal: CancelSignal, onPending: () => void) =>
      waitForOutcome<ApprovalDecision | 'pending' | 'gone'>({
        async look() {
          const request = await find(id);
          if (request === undefined) return 'gone';
          if (request.state !== 'pending') return request.state;
          onPending();
          return undefined;
        },
        listen(check) {
          const listener = (decided: string) => {
            if (decided === id) check();
          };
          listeners.add(listener);
          return () => void listeners.delete(listener);
        },
        late: 'pending',
        waitMs,
        signal,
        clock,
      }),

    /** Approves the same call for the rest of the session. `session` names session and login. */
    async allowInSession(session: string, call: CallToApprove) {
      await allowances.create(buildSessionKey(session, call), ALLOWED, SESSION_SECONDS);
    },
    isAllowedInSession: async (session: string, call: CallToApprove) =>
      (await allowances.get(buildSessionKey(session, call))) === ALLOWED,

    /** Returns the secret that identifies the next round. */
    async beginRound(call: CallToApprove, round: ApprovalRound) {
      const secret = generateSecret();
      const seconds = round.kind === 'approved' ? ROUND_SECONDS : APPROVAL_SECONDS;
      await rounds.create(buildRoundKey(secret), { ...round, call: nameCall(call) }, seconds);
      return secret;
    },
    /** Atomic: the round, once; undefined for another call, and after expiry. */
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
