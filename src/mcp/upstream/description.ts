// A server's description of itself, read without trust.
import { isObject, type JsonObject } from '../../platform/json.ts';
import { LIST_KINDS, LIST_NAMES, type ListKind, type ListName } from '../protocol/list-kinds.ts';
import { isDeclared, SKILLS } from '../protocol/revisions.ts';
import { isSessionVersion, STATELESS_VERSION } from './envelope.ts';
import type { UpstreamDescription } from './upstream.ts';

/** The result of `initialize`; undefined where its version is none that is spoken here. */
export function readInitializeResult(result: JsonObject): UpstreamDescription | undefined {
  const { protocolVersion, capabilities, serverInfo, instructions } = result;
  if (!isSessionVersion(protocolVersion)) return undefined;
  return describe({ era: 'session', protocolVersion }, capabilities, serverInfo, instructions);
}

/** The result of `server/discover`; undefined where 2026-07-28 is not among its versions. */
export function readDiscoverResult(result: JsonObject): UpstreamDescription | undefined {
  const { supportedVersions, capabilities, instructions, _meta: meta } = result;
  const speaks = Array.isArray(supportedVersions) && supportedVersions.includes(STATELESS_VERSION);
  if (!speaks) return undefined;
  const serverInfo = isObject(meta) ? meta['io.modelcontextprotocol/serverInfo'] : undefined;
  return describe(
    { era: 'stateless', protocolVersion: STATELESS_VERSION },
    capabilities,
    serverInfo,
    instructions,
  );
}

const describe = (
  spoken: Pick<UpstreamDescription, 'era' | 'protocolVersion'>,
  capabilities: unknown,
  serverInfo: unknown,
  instructions: unknown,
): UpstreamDescription => ({
  ...spoken,
  capabilities: isObject(capabilities) ? capabilities : {},
  serverInfo: isObject(serverInfo) ? serverInfo : {},
  instructions: typeof instructions === 'string' ? instructions : undefined,
});

/** Lists of which the server says when they change; none where it is not known. */
export const findListsThatChange = (
  description: UpstreamDescription | undefined,
): readonly ListName[] =>
  LIST_NAMES.filter((list) => Object(description?.capabilities[list]).listChanged === true);

/** True if the server has the list at all. */
export const offersList = (capabilities: JsonObject, kind: ListKind): boolean =>
  kind === 'skills'
    ? findSkillSettings(capabilities) !== undefined
    : isObject(capabilities[LIST_KINDS[kind].list]);

/** SEP-2640: undefined where it has no skills. */
function findSkillSettings({ extensions }: JsonObject): object | undefined {
  const settings = isObject(extensions) ? extensions[SKILLS] : undefined;
  return isDeclared(settings) ? settings : undefined;
}

/** SEP-2640: whether it lists what lies in directories. */
export function canReadDirectories(capabilities: JsonObject): boolean {
  const settings = findSkillSettings(capabilities);
  return isObject(settings) && settings.directoryRead === true;
}

/** MCP "Resources": whether it says when those change that somebody subscribed to. */
export const canSubscribe = ({ resources }: JsonObject): boolean =>
  isObject(resources) && resources.subscribe === true;

/**
 * MCP 2026-07-28 "Subscriptions": the params of `subscriptions/listen`, for all that the server can tell; undefined
 * where that is nothing.
 */
export function toListenParams(
  description: UpstreamDescription | undefined,
  uris: readonly string[],
): JsonObject | undefined {
  const hasResources = uris.length > 0 && canSubscribe(description?.capabilities ?? {});
  const notifications = {
    ...Object.fromEntries(
      findListsThatChange(description).map((list) => [`${list}ListChanged`, true]),
    ),
    ...(hasResources && { resourceSubscriptions: uris }),
  };
  return Object.keys(notifications).length > 0 ? { notifications } : undefined;
}

// §18.3: what a server does not speak that the configuration file demands of it (`era`).

export const NOT_STATELESS =
  'it does not speak MCP 2026-07-28, which "era": "stateless" demands: remove "era" from its entry in the configuration file';

export const NO_SESSIONS =
  'it refuses to begin a session (initialize), which "era": "session" demands: remove "era" from its entry in the configuration file';
