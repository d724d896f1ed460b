// tsc: 'servce' does not exist in type
import { defineResourceTemplate } from 'postern/define';

defineResourceTemplate({
  uriTemplate: 'source://{service}/{+path}',
  name: 'source',
  description: 'A file of a service.',
  complete: { servce: () => ['search'] },
  read: ({ service, path }) => ({ text: service + path }),
});
