// The chart of deploy/helm, rendered and compared with what Kubernetes and the gateway expect.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import { SETTING_GROUPS } from '../../src/config/config.ts';
import { loadConfig } from '../../src/config/load.ts';
import { findUnknownMembers, validateManifest } from '../support/deploy/helm/check-manifests.ts';
import { buildRenderer, type Rendered, type Values } from '../support/deploy/helm/render-chart.ts';

const INSTALLATION_MS = 300_000;
const CONFIG = {
  mcpServers: {
    notes: { url: 'http://notes.tools:4002/mcp', headers: { 'X-Key': '${NOTES_KEY}' } },
  },
};
const MINIMUM = { baseUrl: 'https://mcp.example.com', existingSecret: 'postern' };
/** Everything that can be switched on. */
const EVERYTHING = {
  ...MINIMUM,
  settings: { OIDC_ISSUER: 'https://login.example.com', OAUTH_CLIENT_ID: 'postern', WORKERS: 2 },
  image: { repository: 'registry.example.com/postern', tag: '0.2.0-1' },
  imagePullSecrets: [{ name: 'registry' }],
  config: CONFIG,
  lock: '{ "version": 1 }\n',
  env: [{ name: 'REDIS_PASSWORD', valueFrom: { secretKeyRef: { name: 'redis', key: 'auth' } } }],
  args: ['--catalog', '/catalog/tools.mjs'],
  volumes: [{ name: 'catalog', configMap: { name: 'catalog' } }],
  volumeMounts: [{ name: 'catalog', mountPath: '/catalog', readOnly: true }],
  ingress: { enabled: true, className: 'nginx', tlsSecretName: 'tls', annotations: { a: 'b' } },
  httpRoute: {
    enabled: true,
    parentRefs: [{ name: 'public', namespace: 'gateways' }],
    annotations: { a: 'b' },
  },
  metrics: { serviceMonitor: { enabled: true, labels: { release: 'prometheus' } } },
  autoscaling: { enabled: true },
  networkPolicy: {
    enabled: true,
    from: [{ namespaceSelector: { matchLabels: { name: 'ingress' } } }],
    egress: [{ to: [{ podSelector: {} }], ports: [{ port: 4002, protocol: 'TCP' }] }],
  },
  service: { annotations: { a: 'b' } },
  serviceAccount: { annotations: { a: 'b' } },
  podAnnotations: { a: 'b' },
  podLabels: { team: 'tools' },
  nodeSelector: { disk: 'ssd' },
  tolerations: [{ key: 'tools', operator: 'Exists' }],
  affinity: { nodeAffinity: {} },
};
const ALONE = {
  ...MINIMUM,
  replicaCount: 1,
  persistence: { enabled: true, storageClassName: 'ssd' },
};

let place: string;
let render: (values: Values) => Rendered;

beforeAll(async () => {
  place = await mkdtemp(join(tmpdir(), 'postern-helm-'));
  render = buildRenderer(place);
}, INSTALLATION_MS);
afterAll(() => rm(place, { recursive: true, force: true }));

function find(values: Values, kind: string, suffix = '') {
  const { manifests } = render(values);
  const found = manifests.find(
    (manifest) => manifest.kind === kind && manifest.metadata.name === `mcp-postern${suffix}`,
  );
  if (found === undefined) throw new Error(`No ${kind} among ${manifests.map((one) => one.kind)}`);
  return found;
}

const decode = (data: string): string => Buffer.from(data, 'base64').toString('utf8');

const kindsOf = (values: Values) =>
  render(values)
    .manifests.map(({ kind }) => kind)
    .sort();
const podOf = (values: Values) => find(values, 'Deployment').spec.template.spec;
const containerOf = (values: Values) => podOf(values).containers[0];

test.each([
  ['the least', MINIMUM],
  ['everything', EVERYTHING],
  ['one gateway with a folder', ALONE],
  ['programs', { ...MINIMUM, config: { mcpServers: { files: { command: 'files' } } } }],
])('§10 chart: what Kubernetes gets of %s is valid', async (name, values) => {
  const { manifests } = render(values);
  for (const manifest of manifests) await validateManifest(manifest);
  const unknown = await findUnknownMembers(manifests, join(place, name.replaceAll(' ', '-')));
  expect(unknown).toBe('');
});

test('§10 chart: what is there by default, and what can be switched on', () => {
  expect(kindsOf(MINIMUM)).toEqual([
    ...['ConfigMap', 'Deployment', 'PodDisruptionBudget', 'Service', 'ServiceAccount'],
  ]);
  expect(kindsOf(EVERYTHING)).toEqual([
    ...['ConfigMap', 'Deployment', 'HTTPRoute', 'HorizontalPodAutoscaler', 'Ingress'],
    ...['NetworkPolicy', 'PodDisruptionBudget', 'Secret', 'Service', 'Service', 'ServiceAccount'],
    ...['ServiceMonitor'],
  ]);
  expect(kindsOf(ALONE)).toContain('PersistentVolumeClaim');
});

test('§10 chart: the settings are those of the gateway, and secrets come from the Secret alone', () => {
  const { data } = find(EVERYTHING, 'ConfigMap', '-settings');
  const secrets = {
    OAUTH_CLIENT_SECRET: 'secret',
    OAUTH_STATE_SECRET: 'x'.repeat(32),
    REDIS_URL: 'redis://:password@redis',
  };
  const config = loadConfig({ ...data, ...secrets });
  expect(config.server).toMatchObject({
    baseUrl: 'https://mcp.example.com',
    metricsEnabled: true,
    shutdownDelayMs: 5000,
    workers: 2,
  });
  expect(config.oauth.mode).toBe('broker');
  expect(containerOf(EVERYTHING).envFrom).toEqual([
    { configMapRef: { name: 'mcp-postern-settings' } },
    { secretRef: { name: 'postern' } },
  ]);
  expect(kindsOf(MINIMUM)).not.toContain('Secret');
});

test('§18.1 chart: the configuration file arrives as it was written, beside its lock', () => {
  const { data } = find(EVERYTHING, 'Secret', '-config');
  expect(parse(decode(data['postern.yaml']))).toEqual(CONFIG);
  // Its document end: the gateway knows that nothing is missing.
  expect(decode(data['postern.yaml'])).toMatch(/\n\.\.\.\n$/);
  expect(decode(data['postern.lock'])).toBe(EVERYTHING.lock);
  const { volumes } = podOf(EVERYTHING);
  expect(volumes).toContainEqual({ name: 'config', secret: { secretName: 'mcp-postern-config' } });
  expect(containerOf(EVERYTHING).args).toEqual([
    ...['start', '--config', '/config/postern.yaml', '--catalog', '/catalog/tools.mjs'],
  ]);
  expect(containerOf(MINIMUM).args).toEqual(['start']);
});

test('§10 chart: the pod has no rights, and writes to its folders only', () => {
  const pod = podOf(EVERYTHING);
  expect(pod.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: 1000 });
  expect(pod.automountServiceAccountToken).toBe(false);
  expect(pod.containers[0].securityContext).toEqual({
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ['ALL'] },
  });
  expect(pod.securityContext.seccompProfile).toEqual({ type: 'RuntimeDefault' });
  const volumes = Object.fromEntries(
    pod.volumes.map(({ name, ...volume }: { name: string }) => [name, volume]),
  );
  expect(volumes).toMatchObject({ data: { emptyDir: {} }, tmp: { emptyDir: {} } });
  expect(podOf(ALONE).volumes[0]).toMatchObject({
    persistentVolumeClaim: { claimName: 'mcp-postern' },
  });
});

test('§10 chart: variables and files of one’s own reach the gateway', () => {
  const { env, volumeMounts } = containerOf(EVERYTHING);
  expect(env).toEqual(EVERYTHING.env);
  expect(volumeMounts).toEqual(expect.arrayContaining(EVERYTHING.volumeMounts));
  expect(podOf(EVERYTHING).volumes).toEqual(expect.arrayContaining(EVERYTHING.volumes));
});

test('§10 chart: on OpenShift the platform chooses the user', () => {
  const podSecurityContext = { runAsUser: null, runAsGroup: null, fsGroup: null };
  const { securityContext } = podOf({ ...MINIMUM, podSecurityContext });
  expect(securityContext).toMatchObject({ runAsNonRoot: true });
  for (const name of Object.keys(podSecurityContext)) expect(securityContext[name]).toBeUndefined();
});

test('§18.4 chart: where servers are programs, somebody cleans up after those that have ended', () => {
  const config = { mcpServers: { files: { command: 'mcp-server-filesystem' } } };
  expect(podOf({ ...MINIMUM, config }).shareProcessNamespace).toBe(true);
  expect(podOf(EVERYTHING).shareProcessNamespace).toBeUndefined();
});

const PROGRAMS = { ...MINIMUM, config: { mcpServers: { files: { command: 'files' } } } };

test('§18.3 chart: programs run as another user, by three capabilities and nothing else', () => {
  const [container] = podOf(PROGRAMS).containers;
  expect(find(PROGRAMS, 'ConfigMap', '-settings').data.RUN_PROGRAMS_AS).toBe('1001:1001');
  expect(container.securityContext).toEqual({
    runAsNonRoot: false,
    runAsUser: 0,
    runAsGroup: 0,
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ['ALL'], add: ['KILL', 'SETGID', 'SETUID'] },
  });
  expect(container.command).toEqual([
    'sh',
    '-c',
    'chmod o= /data && exec setpriv --reuid=1000 --regid=1000 --groups=1000 --inh-caps=+kill,+setgid,+setuid --ambient-caps=+kill,+setgid,+setuid -- node /app/dist/cli/main.js "$@"',
    'postern',
  ]);
  const { volumes } = podOf(PROGRAMS);
  const config = volumes.find(({ name }: { name: string }) => name === 'config');
  expect(config.secret.defaultMode).toBe(0o440);
  expect(render(PROGRAMS).notes).toContain('run as 1001:1001');
});

test('§18.3 chart: without programs, or with their user empty, the pod is as strict as ever', () => {
  for (const values of [EVERYTHING, { ...PROGRAMS, runProgramsAs: '' }]) {
    const pod = podOf(values);
    expect(pod.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: 1000 });
    expect(pod.containers[0].securityContext).toEqual(podOf(MINIMUM).containers[0].securityContext);
    expect(pod.containers[0].command).toBeUndefined();
  }
  expect(render({ ...PROGRAMS, runProgramsAs: '' }).notes).toContain('can read its secrets');
});

test.each([
  [{ runProgramsAs: '1000:1001' }, /is the user or a group of the gateway/],
  [{ runProgramsAs: '1001:1000' }, /is the user or a group of the gateway/],
  [{ runProgramsAs: '0:1001' }, /runProgramsAs/],
  [{ podSecurityContext: { runAsUser: null } }, /OpenShift/],
  [{ settings: { RUN_PROGRAMS_AS: 'nobody' } }, /set runProgramsAs instead/],
])('§18.3 chart: %j is refused', (values, says) => {
  expect(() => render({ ...PROGRAMS, ...values })).toThrow(says);
});

test('§10 chart: an image may be named by its digest', () => {
  const digest = `sha256:${'a'.repeat(64)}`;
  expect(containerOf(EVERYTHING).image).toBe('registry.example.com/postern:0.2.0-1');
  expect(containerOf({ ...MINIMUM, image: { digest } }).image).toBe(`postern@${digest}`);
});

test('§10 chart: further gateways start before one is out of breath', () => {
  const [{ resource }] = find(EVERYTHING, 'HorizontalPodAutoscaler').spec.metrics;
  const { cpu } = containerOf(EVERYTHING).resources.requests;
  const millicores = (Number.parseInt(cpu, 10) * resource.target.averageUtilization) / 100;
  // One process uses one CPU.
  expect(millicores).toBeGreaterThanOrEqual(400);
  expect(millicores).toBeLessThanOrEqual(800);
});

test('§4.2 chart: probes ask /health and /health/ready', () => {
  const { startupProbe, livenessProbe, readinessProbe } = containerOf(MINIMUM);
  expect(startupProbe.httpGet.path).toBe('/health');
  expect(livenessProbe.httpGet.path).toBe('/health');
  expect(readinessProbe.httpGet.path).toBe('/health/ready');
});

test.each([0, 5, 60])(
  '§17 chart: with %d s of delay the pod has the time that the gateway takes to stop',
  (shutdownDelaySeconds) => {
    const values = { ...MINIMUM, shutdownDelaySeconds };
    const { SHUTDOWN_DELAY_MS } = find(values, 'ConfigMap', '-settings').data;
    expect(SHUTDOWN_DELAY_MS).toBe(String(shutdownDelaySeconds * 1000));
    const { terminationGracePeriodSeconds } = podOf(values);
    expect(terminationGracePeriodSeconds * 1000).toBeGreaterThanOrEqual(
      Number(SHUTDOWN_DELAY_MS) + Math.max(Number(SHUTDOWN_DELAY_MS), 10_000) + 2000,
    );
    expect(podOf(values).containers[0].readinessProbe.periodSeconds).toBeLessThan(5);
  },
);

test('§10 chart: everything selects the pods of the release', () => {
  const labels = find(EVERYTHING, 'Deployment').spec.template.metadata.labels;
  const selectors = [
    find(EVERYTHING, 'Deployment').spec.selector.matchLabels,
    find(EVERYTHING, 'Service').spec.selector,
    find(EVERYTHING, 'PodDisruptionBudget').spec.selector.matchLabels,
    find(EVERYTHING, 'NetworkPolicy').spec.podSelector.matchLabels,
  ];
  for (const selector of selectors) {
    expect(Object.keys(selector).length).toBeGreaterThan(0);
    expect(labels).toMatchObject(selector);
  }
  const monitored = find(EVERYTHING, 'ServiceMonitor').spec.selector.matchLabels;
  expect(find(EVERYTHING, 'Service').metadata.labels).toMatchObject(monitored);
});

test('§4.11 chart: the ingress shows everything but the metrics, which the monitor reads as job postern', () => {
  const { host, http } = find(EVERYTHING, 'Ingress').spec.rules[0];
  expect(host).toBe('mcp.example.com');
  const backends = http.paths.map(
    (one: { path: string; backend: { service: { name: string } } }) => [
      one.path,
      one.backend.service.name,
    ],
  );
  expect(backends).toEqual([
    ['/', 'mcp-postern'],
    ['/metrics', 'mcp-postern-closed'],
  ]);
  expect(find(EVERYTHING, 'Service', '-closed').spec.selector).toBeUndefined();
  const { jobLabel, endpoints } = find(EVERYTHING, 'ServiceMonitor').spec;
  expect(find(EVERYTHING, 'Service').metadata.labels?.[jobLabel]).toBe('postern');
  expect(endpoints).toEqual([{ port: 'http', path: '/metrics', interval: '30s' }]);
});

test('§12 chart: the route of the Gateway API ends no long call, and shows no metrics', () => {
  const { parentRefs, hostnames, rules } = find(EVERYTHING, 'HTTPRoute').spec;
  expect(parentRefs).toEqual(EVERYTHING.httpRoute.parentRefs);
  expect(hostnames).toEqual(['mcp.example.com']);
  expect(rules).toEqual([
    {
      matches: [{ path: { type: 'Exact', value: '/metrics' } }],
      backendRefs: [{ name: 'mcp-postern-closed', port: 80 }],
    },
    {
      matches: [{ path: { type: 'PathPrefix', value: '/' } }],
      timeouts: { request: '0s', backendRequest: '0s' },
      backendRefs: [{ name: 'mcp-postern', port: 80 }],
    },
  ]);
});

test('§10 chart: other settings and another configuration start other pods', () => {
  const annotationsOf = (values: Values) =>
    find(values, 'Deployment').spec.template.metadata.annotations;
  const other = { ...EVERYTHING, config: { mcpServers: {}, rules: [] } };
  expect(annotationsOf(EVERYTHING)['checksum/config']).not.toBe(
    annotationsOf(other)['checksum/config'],
  );
  expect(annotationsOf(EVERYTHING)['checksum/settings']).not.toBe(
    annotationsOf({ ...EVERYTHING, shutdownDelaySeconds: 6 })['checksum/settings'],
  );
});

test.each([
  [{}, /baseUrl is missing/],
  [{ ...MINIMUM, existingSecret: '' }, /several gateways need Redis: set settings.REDIS_URL/],
  [{ ...ALONE, replicaCount: 2 }, /persistence is for one gateway/],
  [{ ...ALONE, autoscaling: { enabled: true } }, /persistence is for one gateway/],
  [{ ...MINIMUM, settings: { OAUTH_CLIENT_SECRET: 's' } }, /OAUTH_CLIENT_SECRET is a secret/],
  [{ ...MINIMUM, settings: { BASE_URL: 'https://x' } }, /settings.BASE_URL: set baseUrl/],
  [{ ...MINIMUM, settings: { SHUTDOWN_DELAY_MS: 1 } }, /set shutdownDelaySeconds/],
  [{ ...MINIMUM, settings: { METRICS_ENABLED: true } }, /set metrics.enabled/],
  [{ ...MINIMUM, settings: { METRICS_PORT: 9464 } }, /settings.METRICS_PORT: remove it/],
  [{ ...MINIMUM, settings: { WORKERS: 'auto' } }, /set resources.limits.cpu/],
  [{ ...MINIMUM, baseUrl: 'https://x.example/mcp-gw', ingress: { enabled: true } }, /has a path/],
  [{ ...MINIMUM, httpRoute: { enabled: true } }, /httpRoute.parentRefs is missing/],
  [
    { ...MINIMUM, autoscaling: { enabled: true }, resources: { requests: null } },
    /needs resources.requests.cpu/,
  ],
  [{ ...MINIMUM, replicas: 2 }, /additional properties/],
  [{ ...MINIMUM, replicaCount: '2' }, /replicaCount must be integer/],
  [{ ...MINIMUM, settings: { redisUrl: 'redis://r' } }, /property name/],
  [{ ...MINIMUM, settings: { OIDC_ISUER: 'https://x' } }, /property name/],
  [{ ...MINIMUM, settings: { MCP_RATE_LIMIT_MAX: [] } }, /MCP_RATE_LIMIT_MAX/],
])('§10 chart: %j is refused, and the reason says what to set', (values, reason) => {
  expect(() => render(values)).toThrow(reason);
});

/** Hidden where it is printed, because anything may be in it; most often it is the name of the environment. */
const MAY_BE_PUBLIC = ['OTEL_RESOURCE_ATTRIBUTES'];

test('§10 chart: no setting that is a secret gets into a ConfigMap or the Deployment', () => {
  const secrets = SETTING_GROUPS.flatMap(({ settings }) => settings).filter(
    ({ isSecret, variable }) => isSecret && !MAY_BE_PUBLIC.includes(variable),
  );
  expect(secrets.length).toBeGreaterThan(5);
  for (const { variable } of secrets) {
    const value = 'redis://user:password@host';
    const settings = { [variable]: value };
    expect(() => render({ ...MINIMUM, settings }), variable).toThrow(/existingSecret/);
    const env = [{ name: variable, value }];
    expect(() => render({ ...MINIMUM, env }), variable).toThrow(/existingSecret/);
  }
});

test('§18.1 chart: no literal of the configuration file gets anywhere but into a Secret', () => {
  const servers = {
    wiki: { url: 'https://wiki.example?key=hunter2', headers: { Authorization: 'Bearer hunter2' } },
    files: { command: 'files', args: ['--token=hunter2', 'hunter2'], env: { TOKEN: 'hunter2' } },
  };
  const { manifests, notes } = render({ ...MINIMUM, config: { mcpServers: servers } });
  const others = manifests.filter(({ kind }) => kind !== 'Secret');
  expect(JSON.stringify(others) + notes).not.toContain('hunter2');
  const secret = manifests.find(({ kind }) => kind === 'Secret');
  expect(decode(secret?.data['postern.yaml'])).toContain('hunter2');
});

test('§10 chart: the notes name the address for clients, and the Secret where there is none', () => {
  expect(render(MINIMUM).notes).toContain('https://mcp.example.com/mcp');
  expect(render({ ...MINIMUM, replicaCount: 1, existingSecret: '' }).notes).toContain(
    'OAUTH_STATE_SECRET',
  );
  expect(render(MINIMUM).notes).toContain('\n  postern doctor https://mcp.example.com');
});
