// The settings, parsed: what excludes each other is a union, so that it cannot be written.

import type { OutboundConfig } from '../platform/outbound/proxy-choice.ts';
import type { AdminConfig } from './groups/admin.ts';
import type { AuditConfig } from './groups/audit.ts';
import type { HttpConfig } from './groups/http.ts';
import type { LimitsConfig } from './groups/limits.ts';
import type { McpConfig } from './groups/mcp.ts';
import type { OAuthConfig } from './groups/oauth.ts';
import type { AuthConfig } from './groups/provider.ts';
import type { ServerConfig } from './groups/server.ts';
import type { SiteConfig } from './groups/site.ts';
import type { StoreConfig } from './groups/store.ts';
import type { TracingConfig } from './groups/tracing.ts';
import type { UpstreamsConfig } from './groups/upstreams.ts';

/** Every setting, read once at start and frozen. Where a unit is not in the name it is said there. */
export interface Config {
  readonly server: ServerConfig;
  readonly http: HttpConfig;
  readonly store: StoreConfig;
  readonly mcp: McpConfig;
  readonly auth: AuthConfig;
  readonly oauth: OAuthConfig;
  readonly limits: LimitsConfig;
  readonly outbound: OutboundConfig;
  readonly upstreams: UpstreamsConfig;
  readonly site: SiteConfig;
  readonly admin: AdminConfig;
  readonly audit: AuditConfig;
  readonly tracing: TracingConfig;
}
