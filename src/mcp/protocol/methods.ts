// §4.4, §21.1, §21.2: table of the methods of MCP: the facts about each before it runs. Its code is in calls/methods.ts, or
// with its era.
import { truncateForLog } from '../../platform/log.ts';
import { stripUri } from '../../platform/secret-texts.ts';
import type { AuditEvent } from '../../telemetry/audit/audit.ts';
import type { Attributes } from '../../telemetry/tracing/tracing.ts';
import type { ItemKind, ListKind } from './list-kinds.ts';
import type { Era } from './revisions.ts';

export interface Method {
  readonly name: string;
  /** The only era that has it; undefined for both. */
  readonly era?: Era;
  /** It has no response. */
  readonly isNotification?: boolean;
  /** Requires one of these offers of the catalogue; undefined for none. */
  readonly offers?: readonly Offer[];
  /** Requires `MCP_STREAMS`. */
  readonly needsStreams?: true;
  /** The list in its result. */
  readonly list?: ListKind;
  /** The parameter that `Mcp-Name` repeats, for methods without `item`. */
  readonly namedBy?: 'taskId';
  /** Set for methods about one tool, prompt or resource: these may ask the client (2026-07-28 "Supported Requests"). */
  readonly item?: MethodItem;
}

/** A part of the catalogue's offers. */
type Offer =
  | 'tools'
  | 'prompts'
  | 'resources'
  | 'subscriptions'
  | 'listChanges'
  | 'completions'
  | 'logging'
  | 'tasks'
  | 'skills'
  | 'directories';

export interface MethodItem {
  readonly list: Exclude<ListKind, 'templates' | 'skills'>;
  readonly kind: ItemKind;
  /** The parameter that names it; repeated in `Mcp-Name` (2026-07-28). */
  readonly param: 'name' | 'uri';
  readonly auditEvent: AuditEvent;
  /** OpenTelemetry's conventions for MCP. */
  readonly spanAttribute: string;
}

/** The span attribute that names the item. */
export const describeItem = (
  item: MethodItem | undefined,
  subject: string | undefined,
): Attributes =>
  item === undefined || subject === undefined
    ? {}
    : { [item.spanAttribute]: truncateForLog(item.param === 'uri' ? stripUri(subject) : subject) };

const TOOL: MethodItem = {
  list: 'tools',
  kind: 'tool',
  param: 'name',
  auditEvent: 'tool_call',
  spanAttribute: 'gen_ai.tool.name',
};
const PROMPT: MethodItem = {
  list: 'prompts',
  kind: 'prompt',
  param: 'name',
  auditEvent: 'prompt_get',
  spanAttribute: 'gen_ai.prompt.name',
};
const RESOURCE: MethodItem = {
  list: 'resources',
  kind: 'resource',
  param: 'uri',
  auditEvent: 'resource_read',
  spanAttribute: 'mcp.resource.uri',
};

export const METHODS: readonly Method[] = [
  { name: 'initialize', era: 'session' },
  { name: 'notifications/initialized', isNotification: true },
  { name: 'notifications/cancelled', isNotification: true },
  { name: 'notifications/roots/list_changed', isNotification: true },
  { name: 'ping', era: 'session' },
  { name: 'logging/setLevel', era: 'session', offers: ['logging'] },
  { name: 'resources/subscribe', era: 'session', offers: ['subscriptions'], needsStreams: true },
  { name: 'resources/unsubscribe', era: 'session', offers: ['subscriptions'], needsStreams: true },
  { name: 'server/discover', era: 'stateless' },
  {
    name: 'subscriptions/listen',
    era: 'stateless',
    offers: ['subscriptions', 'listChanges', 'tasks'],
    needsStreams: true,
  },
  { name: 'tools/list', offers: ['tools'], list: 'tools' },
  { name: 'tools/call', offers: ['tools'], item: TOOL },
  { name: 'prompts/list', offers: ['prompts'], list: 'prompts' },
  { name: 'prompts/get', offers: ['prompts'], item: PROMPT },
  { name: 'resources/list', offers: ['resources'], list: 'resources' },
  { name: 'resources/templates/list', offers: ['resources'], list: 'templates' },
  { name: 'resources/read', offers: ['resources'], item: RESOURCE },
  { name: 'resources/directory/read', offers: ['directories'] },
  { name: 'skills/list', offers: ['skills'], list: 'skills' },
  { name: 'skills/get', offers: ['skills'] },
  { name: 'tasks/get', era: 'stateless', offers: ['tasks'], namedBy: 'taskId' },
  { name: 'tasks/update', era: 'stateless', offers: ['tasks'], namedBy: 'taskId' },
  { name: 'tasks/cancel', era: 'stateless', offers: ['tasks'], namedBy: 'taskId' },
  { name: 'completion/complete', offers: ['completions'] },
];

/** In all eras, offered or not. */
export const METHODS_BY_NAME: ReadonlyMap<string | undefined, Method> = new Map(
  METHODS.map((row) => [row.name, row]),
);

/** RFC 5424 severities, least severe first. */
export const LOG_SEVERITIES = [
  'debug',
  'info',
  'notice',
  'warning',
  'error',
  'critical',
  'alert',
  'emergency',
] as const;

export type LogSeverity = (typeof LOG_SEVERITIES)[number];

const SEVERITIES: ReadonlySet<unknown> = new Set(LOG_SEVERITIES);

export const isLogSeverity = (value: unknown): value is LogSeverity => SEVERITIES.has(value);

export const isLessSevere = (level: LogSeverity, than: LogSeverity): boolean =>
  LOG_SEVERITIES.indexOf(level) < LOG_SEVERITIES.indexOf(than);
