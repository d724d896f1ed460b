import { defineResourceTemplate } from 'postern/define';

const runbooks = new Map([
  ['checkout', '# checkout\n\nRestart payments first.'],
  ['search', '# search\n\nRebuild the index.'],
]);

export const runbook = defineResourceTemplate({
  uriTemplate: 'runbook://{service}',
  name: 'runbook',
  title: 'Runbook',
  description: 'What to do when a service is in trouble.',
  mimeType: 'text/markdown',
  complete: {
    service: (typed) => [...runbooks.keys()].filter((service) => service.startsWith(typed)),
  },
  read({ service }) {
    const text = runbooks.get(service);
    // Undefined: the caller is told that there is no such resource.
    return text === undefined ? undefined : { text };
  },
});
