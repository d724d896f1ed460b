// §27 as the gateway opens it: calls that somebody has to agree to before they run.

import type { OwnPages } from '../../http/endpoint/own-pages.ts';
import type { CallControl } from '../../mcp/calls/run-target.ts';
import { defineFeature } from '../../mcp/feature.ts';
import { generateSecret, hashSha256 } from '../../platform/ids.ts';
import { isObject } from '../../platform/json.ts';
import { waitForOutcome } from '../../platform/single-flight.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import {
  APPROVAL_LIST_KEY,
  buildApprovalKey,
  buildApprovalRoundKey,
  buildApprovalsChannelName,
  buildApprovedCallKey,
  buildListedApprovalKey,
  buildSessionApprovalKey,
  buildUserApprovalsKey,
  OPERATOR_APPROVALS_KEY,
} from '../../store/keys.ts';
import { hashOwner, nameOwner } from '../../store/owner.ts';
import { type Change, createRecords, jsonFormat, textFormat } from '../../store/records.ts';
import { createReplicas, type Replicas } from '../../store/replicas/replicas.ts';
import type { AuditedAction } from '../../telemetry/audit/audit.ts';
import { createApprovalEndpoints } from './approval-endpoints.ts';
import {
  type ApprovalDecision,
  type ApprovalObserver,
  type ApprovalRequest,
  type ApprovalRound,
  type Approver,
  type AskedWhom,
  type CallApprovals,
  type CallToApprove,
  createApprovalPanels,
  type DecidedBy,
} from './approvals.ts';
import { createAskFirst } from './ask-first.ts';

export const approvals = defineFeature({
  name: 'approvals',
  open(
    runtime,
    {
      getGuards,
      ownPages,
    }: Pick<CallControl, 'getGuards'> & { readonly ownPages: OwnPages | undefined },
  ) {
    const { close, ...opened } = openApprovals(runtime, getGuards);
    return {
      gives: opened,
      ...(ownPages && { endpoints: createApprovalEndpoints(runtime, ownPages, opened.approvals) }),
      panels: createApprovalPanels(opened.approvals),
      close,
    };
  },
});

// §27: requests for approval, as the store has them: each bound to one user, client and call, decided once, used once.

/** Somebody has decided. */
interface ApprovalMessage {
  readonly decided: string;
}

const isApprovalMessage = (value: unknown): value is ApprovalMessage =>
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
const nameCall = ({ owner, clientId, digest }: CallToApprove): string =>
  JSON.stringify([owner === undefined ? null : nameOwner(owner), clientId ?? null, digest]);

function createCallApprovals(
  runtime: Runtime,
  replicas: Replicas<ApprovalMessage>,
  observer: ApprovalObserver,
): CallApprovals {
  const { store, getSeal, clock } = runtime;
  const requests = createRecords(
    store,
    jsonFormat<ApprovalRequest>('A request for approval'),
    getSeal,
  );
  const allowances = createRecords(store, textFormat, getSeal);
  const rounds = createRecords(store, jsonFormat<RoundRecord>('A round of a call'), getSeal);
  const listeners = new Set<(id: string) => void>();

  const tell = (id: string): void => {
    for (const listener of [...listeners]) listener(id);
  };
  replicas.listen(({ decided }) => tell(decided));

  // The record of a request.

  const buildKey = (id: string): string => buildApprovalKey(hashSha256(id));

  const isCurrent = (request: ApprovalRequest): boolean => request.expiresAt > clock.now();

  async function find(id: string): Promise<ApprovalRequest | undefined> {
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

  const findListed = async (ids: readonly string[]): Promise<readonly ApprovalRequest[]> =>
    (await Promise.all(ids.map(find))).flatMap((one) => (one?.state === 'pending' ? [one] : []));

  async function create(
    call: CallToApprove & Pick<ApprovalRequest, 'owner'>,
    approver: Approver,
  ): Promise<ApprovalRequest> {
    const createdAt = clock.now();
    const expiresAt = createdAt + APPROVAL_SECONDS * 1000;
    const { owner, clientId, view, server, tool, name, args, meta, digest } = call;
    const request: ApprovalRequest = {
      ...{ owner, clientId, view, server, tool, name, args, meta, digest },
      ...{ id: generateSecret(), approver, state: 'pending', createdAt, expiresAt },
    };
    await requests.put(buildKey(request.id), request, APPROVAL_SECONDS);
    return request;
  }

  /**
   * False where one of them is full. Counted once it is added, so that many at the same moment count each other; that of the user
   * first, so that one user's many never stand in that of all.
   */
  async function addToLists(request: ApprovalRequest): Promise<boolean> {
    for (const [list, key] of listsOf(request)) {
      await store.setListed(list, key, request.id, APPROVAL_SECONDS);
      const max = list === APPROVAL_LIST_KEY ? MAX_IN_ALL : MAX_OF_USER;
      if (list !== OPERATOR_APPROVALS_KEY && (await store.countListed(list)) > max) return false;
    }
    return true;
  }

  const removeFromLists = async (request: ApprovalRequest): Promise<void> => {
    for (const [list, key] of listsOf(request)) await store.deleteListed(list, key);
  };

  return {
    async request(call, approver) {
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
          observer.asked(request, approver);
          return request;
        }
        await removeFromLists(request);
        await store.delete(buildKey(request.id));
        if (!isListed && (await store.get(key)) === standing) return undefined;
      }
    },
    find,
    async listOfUser(owner) {
      const list = buildUserApprovalsKey(hashOwner(owner));
      const { items } = await store.readListed(list, { from: undefined, limit: MAX_OF_USER });
      return findListed(items.map(({ value }) => value));
    },
    async listForOperators(page) {
      const { items, next } = await store.readListed(OPERATOR_APPROVALS_KEY, page);
      return { items: await findListed(items.map(({ value }) => value)), next };
    },
    async decide(id, decision, by) {
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
      observer.decided(decided, decided.approver, decision, by);
      tell(id);
      // Whoever waits elsewhere looks now and then by itself, too.
      replicas.send({ decided: id }).catch(() => {});
      return decided;
    },
    async take(id, call) {
      const request = await requests.take(
        buildKey(id),
        (one) => one.state === 'approved' && isCurrent(one) && nameCall(one) === nameCall(call),
      );
      if (request === undefined) return false;
      observer.used(request, request.approver);
      return true;
    },
    wait: (id, signal) =>
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

    async allowInSession(sessionId, call) {
      await allowances.create(buildSessionKey(sessionId, call), ALLOWED, SESSION_SECONDS);
    },
    isAllowedInSession: async (sessionId, call) =>
      (await allowances.get(buildSessionKey(sessionId, call))) === ALLOWED,

    async beginRound(call, round) {
      const secret = generateSecret();
      const seconds = round.kind === 'approved' ? ROUND_SECONDS : APPROVAL_SECONDS;
      await rounds.create(buildRoundKey(secret), { ...round, call: nameCall(call) }, seconds);
      return secret;
    },
    async takeRound(secret, call) {
      const kept = await rounds.take(buildRoundKey(secret));
      if (kept === undefined) return undefined;
      const { call: named, ...round } = kept;
      return named === nameCall(call) ? round : undefined;
    },
  };
}

/** The call that it is of: that of `nameCall`. */
type RoundRecord = ApprovalRound & { readonly call: string };

const ALLOWED = 'allowed';

const buildSessionKey = (sessionId: string, call: CallToApprove): string =>
  buildSessionApprovalKey(hashSha256(JSON.stringify([sessionId, nameCall(call)])));

const buildRoundKey = (secret: string): string => buildApprovalRoundKey(hashSha256(secret));

// §21.1: approvals in the audit log and in metrics. Never the value of an argument.

/** The digest says which call it is of several with the same tool, and nothing of its arguments. */
const describe = (call: CallToApprove, whom: AskedWhom): AuditedAction => ({
  event: 'approval',
  user: call.owner?.sub,
  issuer: call.owner?.issuer,
  client: call.clientId,
  server: call.server === '' ? undefined : call.server,
  tool: call.name,
  target: `${whom} ${call.digest}`,
});

const nameDecider = ({ kind, name }: DecidedBy): string =>
  kind === 'user' || name === undefined ? kind : `${kind} ${name}`;

/** Metrics first. */
function observeApprovals({ metrics, audit }: Runtime): ApprovalObserver {
  return {
    asked(call, whom) {
      metrics.recordApproval(whom, 'asked');
      audit?.write({ ...describe(call, whom), action: 'asked' }, { outcome: 'asked' });
    },
    decided(call, whom, decision, by) {
      metrics.recordApproval(whom, decision);
      audit?.write(
        { ...describe(call, whom), action: decision, by: nameDecider(by) },
        { outcome: decision === 'approved' ? 'success' : 'denied' },
      );
    },
    used(call, whom) {
      metrics.recordApproval(whom, 'used');
      audit?.write({ ...describe(call, whom), action: 'used' }, { outcome: 'success' });
    },
  };
}

function openApprovals(runtime: Runtime, getGuards: CallControl['getGuards']) {
  const replicas = createReplicas<ApprovalMessage>(
    runtime,
    buildApprovalsChannelName(runtime.config.mcp.sessions.keyPrefix),
    isApprovalMessage,
  );
  const observer = observeApprovals(runtime);
  const kept = createCallApprovals(runtime, replicas, observer);
  return {
    approvals: kept,
    askFirst: createAskFirst(runtime, kept, observer, getGuards),
    close: replicas.close,
  };
}
