# docker build -t postern .
# docs/deploy.md says how to run it. What may be copied into it is listed in .dockerignore.

FROM node:24-slim AS base
WORKDIR /app
COPY package.json package-lock.json ./

# The packages that the service needs.
FROM base AS packages
RUN npm ci --omit=dev --ignore-scripts

FROM base AS build
RUN npm ci --ignore-scripts
COPY tsconfig.json tsconfig.build.json ./
COPY scripts scripts
COPY docs docs
COPY src src
RUN npm run build && mkdir data

FROM node:24-slim
WORKDIR /app
COPY package.json LICENSE postern.schema.json ./
COPY templates templates
COPY --from=packages /app/node_modules node_modules
COPY --from=build /app/dist dist
# The embedded store: the only folder that the service writes to.
COPY --from=build --chown=1000:1000 /app/data /data
# Servers that are programs keep things in HOME, and all but /data and /tmp may be read-only.
ENV NODE_ENV=production DATA_DIR=/data HOME=/tmp
# By number, so that Kubernetes can see that it is not root.
USER 1000:1000
VOLUME /data
EXPOSE 3000
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s CMD ["node", "-e", "fetch('http://127.0.0.1:' + (process.env.PORT || 3000) + '/health').then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["node", "/app/dist/cli/main.js"]
CMD ["start"]
