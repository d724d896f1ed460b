// What the pages are for, in the order in which a newcomer needs them: what only operators look up is folded.
import type { DefaultTheme } from 'vitepress';

export const SIDEBAR: DefaultTheme.SidebarItem[] = [
  { text: 'Start here', link: '/guide' },
  {
    text: 'Use it',
    items: [
      { text: 'Connect a client', link: '/connect' },
      { text: 'Clients', link: '/clients' },
      { text: 'Playground', link: '/playground' },
      { text: 'When something fails', link: '/errors' },
    ],
  },
  {
    text: 'Run it',
    items: [
      {
        text: 'Identity providers',
        link: '/providers',
        collapsed: true,
        items: [
          { text: 'Microsoft Entra ID', link: '/provider-entra' },
          { text: 'Okta', link: '/provider-okta' },
          { text: 'Auth0', link: '/provider-auth0' },
          { text: 'Keycloak', link: '/provider-keycloak' },
          { text: 'Google', link: '/provider-google' },
          { text: 'Amazon Cognito', link: '/provider-cognito' },
          { text: 'authentik', link: '/provider-authentik' },
          { text: 'dex', link: '/provider-dex' },
          { text: 'Ory Hydra', link: '/provider-hydra' },
        ],
      },
      { text: 'Modes of login', link: '/modes' },
      { text: 'Your MCP servers', link: '/upstreams' },
      { text: 'Rules', link: '/rules' },
      { text: 'Pages for your users', link: '/front-page' },
      { text: 'Settings', link: '/settings' },
      { text: 'Deploy', link: '/deploy' },
      {
        text: 'Operations',
        link: '/operations',
        collapsed: true,
        items: [
          { text: 'Build and start', link: '/operations/start' },
          { text: 'Proxies and the network', link: '/operations/network' },
          { text: 'Replicas, store and processes', link: '/operations/store' },
          { text: 'Limits and memory', link: '/operations/limits' },
          { text: 'Outages, upgrades and shutdown', link: '/operations/outages' },
          { text: 'Logs, audit and tracing', link: '/operations/logs' },
          { text: 'Monitoring', link: '/operations/metrics' },
          { text: 'The page for operators', link: '/operations/operators' },
        ],
      },
      { text: 'Scaling', link: '/scaling' },
      { text: 'Command line', link: '/cli' },
      { text: 'postern doctor', link: '/doctor' },
    ],
  },
  {
    text: 'Build tools',
    items: [
      { text: 'Your own tools', link: '/authors' },
      { text: 'Their tests', link: '/testing' },
    ],
  },
  {
    text: 'For operators',
    // Without one of its own the theme nests a button in a button, which assistive technology cannot reach.
    link: '/how-it-works',
    collapsed: true,
    items: [
      { text: 'Protocol', link: '/protocol' },
      { text: 'Threat model', link: '/threat-model' },
      { text: 'Benchmarks', link: '/benchmarks' },
      { text: 'Architecture', link: '/architecture' },
      {
        text: 'Reference',
        link: '/reference',
        collapsed: true,
        items: [
          { text: 'Records and states', link: '/reference/data' },
          { text: 'Endpoints', link: '/reference/endpoints' },
          { text: 'The MCP endpoint', link: '/reference/mcp' },
          { text: 'The OAuth endpoints', link: '/reference/oauth' },
          { text: 'Metadata, metrics and headers', link: '/reference/metadata' },
          { text: 'Access tokens and events', link: '/reference/authentication' },
          { text: 'How errors are told', link: '/reference/errors' },
          { text: 'Rate limits and bounds', link: '/reference/limits' },
          { text: 'Versions, settings and start', link: '/reference/start' },
          { text: 'Logins through the gateway', link: '/reference/logins' },
          { text: 'Streams, replicas and outages', link: '/reference/streams' },
          { text: 'Servers behind the gateway', link: '/reference/servers' },
          { text: 'Connections to servers', link: '/reference/server-connections' },
          { text: 'Rules, identity and the lock', link: '/reference/server-rules' },
          { text: 'The pages for users', link: '/reference/pages' },
          { text: 'The command postern', link: '/reference/command' },
          { text: 'Audit records and spans', link: '/reference/audit' },
          { text: 'The API for operators', link: '/reference/operators' },
        ],
      },
    ],
  },
];
