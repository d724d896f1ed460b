// A dry run: one of each kind of thing that a newcomer may add, as CONTRIBUTING.md shows it (test/types/one-of-each). Each is a row of
// its table as it stands, works by what reads that table, and does not compile once a member is left out.

import { inject } from 'light-my-request';
import { describe, expect, test } from 'vitest';
import { type Check, runChecks } from '../../../src/cli/doctor/finding.ts';
import { type Member, parseText, type Shape } from '../../../src/config/file/shapes/shape.ts';
import { chooseStore, type StoreKind, type StoreKinds } from '../../../src/config/groups/store.ts';
import { integer } from '../../../src/config/rules.ts';
import { createReader, defineSetting, readAll, type Setting } from '../../../src/config/setting.ts';
import { createGuards } from '../../../src/control/guards/create-guards.ts';
import type { BuiltInGuard, GuardKind } from '../../../src/control/guards/define-guard.ts';
import { createUseShape, GUARD_KINDS } from '../../../src/control/guards/guard-config.ts';
import type { ErrorRow } from '../../../src/errors/catalogue.ts';
import { createTransport } from '../../../src/gateway/gateway.ts';
import type { AdminPanel } from '../../../src/http/endpoint/admin-panel.ts';
import type { AdminTable } from '../../../src/http/endpoint/admin-table.ts';
import type { Endpoint } from '../../../src/http/endpoint/endpoint.ts';
import { createLimiter } from '../../../src/http/limits/limiter.ts';
import type { GuardedItem } from '../../../src/mcp/calls/guards.ts';
import { joinPolicies, type Policy } from '../../../src/mcp/calls/policy.ts';
import {
  beginFeatures,
  defineFeature,
  type Feature,
  type FeatureParts,
} from '../../../src/mcp/feature.ts';
import { GATEWAY_CALLER } from '../../../src/mcp/upstream/upstream.ts';
import { createOperatorEndpoints } from '../../../src/pages/admin.ts';
import type { Runtime } from '../../../src/runtime/runtime.ts';
import type { CredentialType } from '../../../src/servers/credentials/credential-type.ts';
import { createAuthShape, openCredentials } from '../../../src/servers/credentials/credentials.ts';
import type { Reach, Transport } from '../../../src/servers/transport/transport.ts';
import { openByKind, type StoreDriver, type StoreDrivers } from '../../../src/store/open.ts';
import { manualClock } from '../../support/gateway/clock.ts';
import { openTestRuntime } from '../../support/gateway/runtime.ts';
import { closeAfterTest } from '../../support/lifetimes.ts';
import { wrapStore } from '../../support/stores/wrapped-store.ts';
import { teaCheck } from '../../types/one-of-each/check.ts';
import { signed } from '../../types/one-of-each/credential-type.ts';
import { createTeaEndpoint } from '../../types/one-of-each/endpoint.ts';
import { teaErrors } from '../../types/one-of-each/error.ts';
import { tea } from '../../types/one-of-each/feature.ts';
import { teaShape } from '../../types/one-of-each/file-member.ts';
import { teaGuard } from '../../types/one-of-each/guard.ts';
import { createTeaPanel } from '../../types/one-of-each/panel.ts';
import { createNightPolicy } from '../../types/one-of-each/policy.ts';
import type { QueueConfig } from '../../types/one-of-each/queue.ts';
import { teaSettings } from '../../types/one-of-each/setting.ts';
import { memoryDriver } from '../../types/one-of-each/store-driver.ts';
import { type MemoryStoreConfig, memoryKind } from '../../types/one-of-each/store-kind.ts';
import { queueTransport } from '../../types/one-of-each/transport.ts';

/** A row without one of its members. */
function leaveOut<Row extends object, Name extends keyof Row>(
  row: Row,
  name: Name,
): Omit<Row, Name> {
  const { [name]: _, ...others } = row;
  return others;
}

/** Says that a value is one of `Row`; the compiler says where it is none. */
const isRow = <Row>(_row: Row) => {};

const readFile = <Content>(value: unknown, shape: Shape<Content>) => {
  const source = { fileName: 'postern.json', format: 'json', env: {} } as const;
  const parsed = parseText(JSON.stringify(value), source, shape);
  if (parsed.kind === 'broken') throw new Error(parsed.problem.message);
  return {
    content: parsed.content,
    problems: parsed.listProblems().map(({ message }) => message),
  };
};

const AT_NOON = Date.UTC(2026, 0, 1, 12);
const AT_NIGHT = Date.UTC(2026, 0, 1, 3);

describe('a guard', () => {
  const item: GuardedItem = { kind: 'tool', name: 'brew', server: '' };

  test('§26 guard: a new one is named by the file, and refuses by its one row', async () => {
    const kinds: readonly GuardKind[] = [...GUARD_KINDS, teaGuard];
    const { content: use, problems } = readFile({ builtIn: 'tea' }, createUseShape(kinds));
    expect(problems).toEqual([]);
    if (use === undefined) throw new Error('It was not read');
    const config = { name: 'tea', on: ['tools/call'], use, onError: 'refuse' } as const;
    const guards = await createGuards(
      openTestRuntime(),
      [{ ...config, servers: undefined, tools: undefined }],
      () => Promise.reject(new Error('not asked')),
      kinds,
    );
    const guard = guards?.find('tools/call', item);
    const judge = (value: unknown) => guard?.judge({ value, caller: undefined });
    expect(await judge({ name: 'brew', arguments: { what: 'Tea' } })).toMatchObject({
      kind: 'refused',
    });
    expect(await judge({ name: 'brew', arguments: { what: 'coffee' } })).toEqual({
      kind: 'passed',
    });
    expect(guards?.listGuards()).toMatchObject([{ kind: 'built in: tea' }]);
  });

  test('§26 guard: what is left out is a type error', () => {
    isRow<GuardKind>(teaGuard);
    // @ts-expect-error
    isRow<GuardKind>(leaveOut(teaGuard, 'kind'));
    // @ts-expect-error
    isRow<GuardKind>(leaveOut(teaGuard, 'naming'));
    // @ts-expect-error
    isRow<GuardKind>(leaveOut(teaGuard, 'members'));
    // @ts-expect-error
    isRow<GuardKind>(leaveOut(teaGuard, 'read'));
    // @ts-expect-error
    isRow<GuardKind>(leaveOut(teaGuard, 'bind'));
    // @ts-expect-error
    isRow<BuiltInGuard<{ kind: 'tea' }>>(leaveOut(teaGuard, 'createJudge'));
  });
});

describe('a type of credentials', () => {
  test('§18.6 credentials: a new type is named by the file, and signs by its one row', async () => {
    const types: readonly CredentialType[] = [signed];
    expect(readFile({ type: 'signed' }, createAuthShape(types))).toEqual({
      content: { type: 'signed' },
      problems: [],
    });
    const callers = {
      getProviderToken: async () => undefined,
      metadata: undefined,
      connections: undefined,
    };
    const server = { name: 'wiki', url: 'https://wiki.example/mcp', auth: { type: 'signed' } };
    const access = openCredentials(openTestRuntime(), callers, types).openAccess(server);
    const request = { method: 'POST', url: server.url, headers: [], body: Buffer.from('{}') };
    expect(access.getHeaders).toBeUndefined();
    expect(await access.sign?.(GATEWAY_CALLER, request)).toEqual({
      authorization: expect.stringMatching(/^HMAC-SHA256 [0-9a-f]{64}$/),
    });
  });

  test('§18.6 credentials: what is left out is a type error', () => {
    isRow<CredentialType>(signed);
    // @ts-expect-error
    isRow<CredentialType>(leaveOut(signed, 'type'));
    // @ts-expect-error
    isRow<CredentialType>(leaveOut(signed, 'summary'));
    // @ts-expect-error
    isRow<CredentialType>(leaveOut(signed, 'members'));
    // @ts-expect-error
    isRow<CredentialType>(leaveOut(signed, 'required'));
    // @ts-expect-error
    isRow<CredentialType>(leaveOut(signed, 'whyNoOthers'));
    // @ts-expect-error
    isRow<CredentialType>(leaveOut(signed, 'read'));
    // @ts-expect-error
    isRow<CredentialType>(leaveOut(signed, 'requirements'));
    // @ts-expect-error
    isRow<CredentialType>(leaveOut(signed, 'isOfCaller'));
    // @ts-expect-error
    isRow<CredentialType>(leaveOut(signed, 'open'));
  });
});

describe('a transport', () => {
  const config: QueueConfig = {
    kind: 'queue',
    queue: 'orders',
    name: 'orders',
    prefix: 'orders',
    timeoutMs: 1000,
    required: false,
    era: 'auto',
    roots: false,
    tools: { include: ['*'], exclude: [], describe: {} },
  };

  test('§18.3 transport: a new one tells its facts, and opens a server', async () => {
    const row: Transport<QueueConfig> = queueTransport;
    expect(row.describe(config)).toMatchObject({ target: 'orders' });
    expect(row.findFacts(config).needsUser).toBe(false);
    const reach: Reach = { share: unused(), credentials: unused(), host: unused() };
    const upstream = row.open(openTestRuntime(), config, reach);
    const { signal } = new AbortController();
    const request = { method: 'tools/list', params: {}, signal, trace: {}, logLevel: undefined };
    expect(await upstream.request(GATEWAY_CALLER, request)).toEqual({
      queue: 'orders',
      method: 'tools/list',
    });
  });

  test('§18.3 transport: what is left out is a type error', () => {
    isRow<Transport<QueueConfig>>(queueTransport);
    // @ts-expect-error
    isRow<Transport<QueueConfig>>(leaveOut(queueTransport, 'kind'));
    // @ts-expect-error
    isRow<Transport<QueueConfig>>(leaveOut(queueTransport, 'types'));
    // @ts-expect-error
    isRow<Transport<QueueConfig>>(leaveOut(queueTransport, 'addresses'));
    // @ts-expect-error
    isRow<Transport<QueueConfig>>(leaveOut(queueTransport, 'members'));
    // @ts-expect-error
    isRow<Transport<QueueConfig>>(leaveOut(queueTransport, 'words'));
    // @ts-expect-error
    isRow<Transport<QueueConfig>>(leaveOut(queueTransport, 'verb'));
    // @ts-expect-error
    isRow<Transport<QueueConfig>>(leaveOut(queueTransport, 'hasProcesses'));
    // @ts-expect-error
    isRow<Transport<QueueConfig>>(leaveOut(queueTransport, 'build'));
    // @ts-expect-error
    isRow<Transport<QueueConfig>>(leaveOut(queueTransport, 'complete'));
    // @ts-expect-error
    isRow<Transport<QueueConfig>>(leaveOut(queueTransport, 'findFacts'));
    // @ts-expect-error
    isRow<Transport<QueueConfig>>(leaveOut(queueTransport, 'describe'));
    // @ts-expect-error
    isRow<Transport<QueueConfig>>(leaveOut(queueTransport, 'open'));
  });

  /** A transport that needs none of it gets what fails where it is asked. */
  const unused = <Part extends object>(): Part =>
    new Proxy(Object.create(null), {
      get() {
        throw new Error('not asked');
      },
    });
});

describe('a policy', () => {
  const brew = { kind: 'tool', name: 'brew', server: '', annotations: {} } as const;
  const caller = { user: undefined, clientId: undefined };

  test('§18.5 policy: a new one decides from its place in the list', () => {
    const clock = manualClock(AT_NIGHT);
    const policies = joinPolicies([undefined, createNightPolicy(clock)]);
    expect(policies.judge(brew, caller, {})).toEqual({ kind: 'denied', by: 'night' });
    expect(policies.mayAllowSome('brew', caller)).toBe(false);
    clock.advance(AT_NOON - AT_NIGHT);
    expect(policies.judge(brew, caller, {})).toEqual({ kind: 'allowed' });
  });

  test('§18.5 policy: a verdict without its reason, and a misspelled member, are type errors', () => {
    // @ts-expect-error
    isRow<Policy>({ judge: () => ({ kind: 'denied' }) });
    // @ts-expect-error
    isRow<Policy>({ jugde: () => ({ kind: 'allowed' }) });
  });
});

describe('a store', () => {
  test('§3.1 store: a new one is chosen by its settings, and opened by its driver', async () => {
    const runtime = openTestRuntime();
    const chosen = chooseStore([memoryKind], createReader({ STORE_IN_MEMORY: 'true' }));
    const drivers: StoreDrivers<MemoryStoreConfig> = { memory: memoryDriver };
    const store = await openByKind(drivers, chosen, runtime.config, runtime);
    await store.set('tea', 'green', 60);
    expect(await store.get('tea')).toBe('green');
    expect(store.isShared).toBe(memoryKind.isShared);
  });

  test('§3.1 store: what is left out is a type error', () => {
    isRow<StoreKind<MemoryStoreConfig>>(memoryKind);
    // @ts-expect-error
    isRow<StoreKind<MemoryStoreConfig>>(leaveOut(memoryKind, 'read'));
    // @ts-expect-error
    isRow<StoreKind<MemoryStoreConfig>>(leaveOut(memoryKind, 'isShared'));
    // @ts-expect-error
    isRow<StoreKind<MemoryStoreConfig>>(leaveOut(memoryKind, 'describe'));
    // @ts-expect-error
    isRow<StoreKind<MemoryStoreConfig>>(leaveOut(memoryKind, 'describeBriefly'));
    // @ts-expect-error
    isRow<StoreKind<MemoryStoreConfig>>(leaveOut(memoryKind, 'model'));
    isRow<StoreDriver<MemoryStoreConfig>>(memoryDriver);
    // @ts-expect-error
    isRow<StoreDriver<MemoryStoreConfig>>(leaveOut(memoryDriver, 'kind'));
    // @ts-expect-error
    isRow<StoreDriver<MemoryStoreConfig>>(leaveOut(memoryDriver, 'open'));
    // A kind without a row, and a row without a kind.
    // @ts-expect-error
    isRow<StoreKinds<MemoryStoreConfig>>({});
    // @ts-expect-error
    isRow<StoreDrivers<MemoryStoreConfig>>({});
    // @ts-expect-error
    isRow<StoreDrivers<MemoryStoreConfig>>({ memory: memoryDriver, other: memoryDriver });
  });
});

describe('a setting, an error, a member of the file', () => {
  test('§5 setting: a new row is read by its name, and has its default', () => {
    isRow<Setting<number>>(teaSettings.minutes);
    expect(readAll(teaSettings, createReader({ TEA_MINUTES: '5' }))).toEqual({ minutes: 5 });
    expect(readAll(teaSettings, createReader({}))).toEqual({ minutes: 3 });
  });

  test('§5 setting: what is left out is a type error', () => {
    // @ts-expect-error
    defineSetting('TEA_MINUTES', integer(1, 10), { default: 3 });
    // @ts-expect-error
    expect(() => defineSetting('TEA_MINUTES', integer(1, 10))).toThrow();
    // @ts-expect-error
    defineSetting('TEA_MINUTES', integer(1, 10), { default: 'long', summary: 'Tea.' });
  });

  test('§7 error: what is left out is a type error', () => {
    isRow<ErrorRow>(teaErrors.teapot);
    // @ts-expect-error
    isRow<ErrorRow>(leaveOut(teaErrors.teapot, 'status'));
    // @ts-expect-error
    isRow<ErrorRow>(leaveOut(teaErrors.teapot, 'details'));
  });

  test('§18.1 file: a new member is read, described, and reported where it is wrong', () => {
    expect(readFile({ leaves: 'green' }, teaShape).content).toEqual({ leaves: 'green' });
    expect(readFile({ leaves: 'red' }, teaShape).problems).toHaveLength(1);
    expect(teaShape.schema).toMatchObject({
      properties: { leaves: { enum: ['green', 'black'] } },
    });
    // @ts-expect-error
    isRow<Member<string>>({ name: 'leaves', summary: 'Which tea.' });
  });
});

describe('a check of doctor', () => {
  test.each([
    { minutes: 3, status: 'ok' },
    { minutes: 9, status: 'warning' },
  ])('§5 check: a new one finds $status at $minutes minutes', async ({ minutes, status }) => {
    const told: string[] = [];
    const findings = await runChecks([teaCheck], { minutes }, (section) => told.push(section));
    expect(findings).toMatchObject([{ check: 'tea', status }]);
    expect(told).toEqual(['Tea']);
  });

  test('§5 check: what is left out is a type error', () => {
    isRow<Check<{ minutes: number }>>(teaCheck);
    // @ts-expect-error
    isRow<Check<{ minutes: number }>>(leaveOut(teaCheck, 'section'));
    // @ts-expect-error
    isRow<Check<{ minutes: number }>>(leaveOut(teaCheck, 'run'));
  });
});

describe('a feature with an endpoint and a panel', () => {
  const OPERATOR = { sub: 'olga', groups: ['operators'], claims: { azp: 'script' }, token: 'x' };

  test('§4.1 feature: what it gives is served, and shown to operators', async () => {
    const runtime = await openOperatedRuntime();
    const list = beginFeatures<object, { readonly minutes: number }>().with(tea);
    const { ports, features } = await list.open(runtime, { minutes: 4 });
    expect(ports.pour()).toBe('tea, 4 minutes');
    const get = serve(runtime, features);
    expect(await get('/tea')).toEqual({ minutes: 4 });
    expect(await get('/admin/api/tea')).toEqual({ pots: [{ name: 'green', minutes: 4 }] });
    const { tables } = await get('/admin/api/tables');
    expect(tables).toEqual([expect.objectContaining({ path: '/tea', tab: 'Tea', rows: 'pots' })]);
  });

  test('§4.1 feature: what is left out is a type error', () => {
    isRow<Feature<{ minutes: number }, { pour(): string }, unknown>>(tea);
    // @ts-expect-error: it stands before what it needs
    beginFeatures<object, object>().with(tea);
    // @ts-expect-error
    defineFeature({ open: () => ({ gives: {} }) });
    // @ts-expect-error
    defineFeature({ name: 'tea' });
    // @ts-expect-error
    defineFeature({ name: 'tea', open: () => ({ endpoints: [] }) });
  });

  test('§4.1 endpoint: what is left out is a type error', () => {
    isRow<Endpoint>(createTeaEndpoint(3));
    const whole = {
      kind: 'open',
      method: 'GET',
      path: '/tea',
      errors: { form: 'jsonrpc' },
      handle: () => ({ status: 200 }),
    } as const;
    isRow<Endpoint>(whole);
    // @ts-expect-error
    isRow<Endpoint>(leaveOut(whole, 'kind'));
    // @ts-expect-error
    isRow<Endpoint>(leaveOut(whole, 'method'));
    // @ts-expect-error
    isRow<Endpoint>(leaveOut(whole, 'path'));
    // @ts-expect-error
    isRow<Endpoint>(leaveOut(whole, 'errors'));
    // @ts-expect-error
    isRow<Endpoint>(leaveOut(whole, 'handle'));
  });

  test('§22 panel: what is left out is a type error', () => {
    isRow<AdminPanel>(createTeaPanel(3));
    // @ts-expect-error
    isRow<AdminPanel>({ path: '/tea', show: () => ({}) });
    // @ts-expect-error
    isRow<AdminPanel>({ method: 'GET', show: () => ({}) });
    // @ts-expect-error
    isRow<AdminPanel>({ method: 'GET', path: '/tea' });
    // @ts-expect-error
    isRow<AdminPanel>({ method: 'POST', path: '/tea', show: () => ({}) });
    const table: AdminTable = {
      group: 'tools',
      tab: 'Tea',
      title: 'Tea',
      none: 'None.',
      rows: 'pots',
      columns: [],
    };
    // @ts-expect-error
    isRow<AdminTable>(leaveOut(table, 'group'));
    // @ts-expect-error
    isRow<AdminTable>(leaveOut(table, 'tab'));
    // @ts-expect-error
    isRow<AdminTable>(leaveOut(table, 'title'));
    // @ts-expect-error
    isRow<AdminTable>(leaveOut(table, 'none'));
    // @ts-expect-error
    isRow<AdminTable>(leaveOut(table, 'rows'));
    // @ts-expect-error
    isRow<AdminTable>(leaveOut(table, 'columns'));
  });

  async function openOperatedRuntime() {
    const { store, remove } = await wrapStore(() => ({}));
    closeAfterTest({
      async close() {
        await store.close();
        await remove();
      },
    });
    const env = {
      AUTH_REQUIRED: 'true',
      OIDC_ISSUER: 'https://id.example',
      OIDC_AUDIENCE: 'https://gateway.example/mcp',
      ADMIN_GROUPS: 'operators',
      ADMIN_CLIENTS: 'script',
    };
    return openTestRuntime({ env, store });
  }

  /** As the gateway does, with everybody taken for an operator. */
  function serve(runtime: Runtime, parts: readonly FeatureParts<object>[]) {
    const limiter = createLimiter(runtime);
    const panels = parts.flatMap((feature) => feature.panels ?? []);
    const endpoints = [
      ...parts.flatMap((feature) => feature.endpoints ?? []),
      ...createOperatorEndpoints(runtime, () => 'script', limiter, panels),
    ];
    const checks = { limiter, authenticate: () => OPERATOR };
    const noHeaders = { request: [], requestPrefix: undefined, response: [] };
    const { handler } = createTransport(runtime, endpoints, checks, noHeaders);
    const { host } = new URL(runtime.config.server.baseUrl);
    return async (url: string) =>
      (await inject(handler, { url, headers: { host, authorization: 'Bearer x' } })).json();
  }
});
