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
      { text: 'Operations', link: '/operations' },
      { text: 'Scaling', link: '/scaling' },
      { text: 'Command line', link: '/cli' },
      { text: 'postern doctor', link: '/doctor' },
    ],
  },
  {
    text: 'Build tools',
    items: [{ text: 'Your own tools', link: '/authors' }],
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
      { text: 'Reference', link: '/reference' },
    ],
  },
];
