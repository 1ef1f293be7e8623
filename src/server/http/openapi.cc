// The only definition of the OpenAPI document. See openapi.h.
//
// Bodies to check, reserve and settle differ only in the cost and in whether an id is required. That part exists
// once, with placeholders between @. Patterns are narrower than what the server accepts, so that everything they
// match is valid. weir/quota.h defines the grammar of limits. tests/server/schemathesis.sh tests the server against
// the document.
#include "server/http/openapi.h"

#include <string>

namespace weir {
namespace {

constexpr std::string_view kKinds = R"json(
     {
      "type": "object", "required": ["key", "limit"@id@], "additionalProperties": false,
      "properties": {
       "key": {"$ref": "#/components/schemas/Key"}, "limit": {"$ref": "#/components/schemas/Rate"},
       "algorithm": {
        "enum": [
         "fixed_window", "sliding_log", "sliding_window", "token_bucket", "leaky_bucket", "leaky_meter"]},
       "cost": {"$ref": "#/components/schemas/@cost@"}, "id": {"$ref": "#/components/schemas/Id"}}},
     {
      "type": "object", "required": ["key", "limit"@id@], "additionalProperties": false,
      "properties": {
       "key": {"$ref": "#/components/schemas/Key"}, "limit": {"$ref": "#/components/schemas/Burst"},
       "algorithm": {"enum": ["token_bucket", "leaky_bucket", "leaky_meter"]},
       "cost": {"$ref": "#/components/schemas/@cost@"}, "id": {"$ref": "#/components/schemas/Id"}}},
     {
      "type": "object", "required": ["key", "limit"@id@], "additionalProperties": false,
      "properties": {
       "key": {"$ref": "#/components/schemas/Key"}, "limit": {"$ref": "#/components/schemas/Calendar"},
       "algorithm": {"enum": ["fixed_window"]}, "cost": {"$ref": "#/components/schemas/@cost@"},
       "id": {"$ref": "#/components/schemas/Id"}}},
     {
      "type": "object", "additionalProperties": false, "required": [@only id@],
      "anyOf": [
       {"required": ["user"]}, {"required": ["api_key"]}, {"required": ["ip"]}, {"required": ["tenant"]},
       {"required": ["plan"]}, {"required": ["method"]}, {"required": ["host"]}, {"required": ["path"]},
       {"required": ["headers"]}, {"required": ["entries"]}],
      "properties": {
       "user": {"$ref": "#/components/schemas/User"}, "api_key": {"$ref": "#/components/schemas/Api_key"},
       "ip": {"$ref": "#/components/schemas/Ip"}, "tenant": {"$ref": "#/components/schemas/Tenant"},
       "plan": {"$ref": "#/components/schemas/Plan"}, "method": {"$ref": "#/components/schemas/Method"},
       "host": {"$ref": "#/components/schemas/Host"}, "path": {"$ref": "#/components/schemas/Path"},
       "headers": {"$ref": "#/components/schemas/Headers"}, "entries": {"$ref": "#/components/schemas/Entries"},
       "cost": {"$ref": "#/components/schemas/@cost@"}, "id": {"$ref": "#/components/schemas/Id"}}})json";

constexpr std::string_view kDocument = R"json({
 "openapi": "3.1.0",
 "info": {
  "title": "Weir", "version": "0.1.0", "summary": "Rate limiter: checks whether a request is within its limits",
  "description": "Answers have rate limit header fields. The config selects their form; these are the default ones."},
 "paths": {
  "/v1/check": {
   "post": {
    "summary": "Check a request and charge it", "operationId": "check",
    "parameters": [
     {
      "name": "peek", "in": "query", "allowEmptyValue": true, "schema": {"type": "boolean", "default": false},
      "description": "Returns the decision without charging anything."},
     {
      "name": "Idempotency-Key", "in": "header", "schema": {"type": "string", "pattern": "^[!-~]{1,64}$"},
      "description": "Same as the member `id`. A retry (same key or attributes, same cost) is not charged again."}],
    "requestBody": {
     "required": true, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Check"}}}},
    "responses": {
     "200": {"$ref": "#/components/responses/Allowed"}, "409": {"$ref": "#/components/responses/Conflict"},
     "429": {"$ref": "#/components/responses/Denied"}, "400": {"$ref": "#/components/responses/Bad"},
     "403": {"$ref": "#/components/responses/OtherSite"},
     "413": {"$ref": "#/components/responses/TooLarge"}, "503": {"$ref": "#/components/responses/Busy"}}}},
  "/v1/checks": {
   "post": {
    "summary": "Check many requests at once, each decided separately", "operationId": "checks",
    "description": "Decided in order. Give each check an `id` to make a retry free; Idempotency-Key is rejected.",
    "requestBody": {
     "required": true, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Checks"}}}},
    "responses": {
     "200": {
      "description": "One answer for each check, in order.",
      "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Answers"}}}},
     "400": {"$ref": "#/components/responses/Bad"},
     "403": {"$ref": "#/components/responses/OtherSite"}, "413": {"$ref": "#/components/responses/TooLarge"},
     "503": {"$ref": "#/components/responses/Busy"}}}},
  "/v1/reserve": {
   "post": {
    "summary": "Reserve the largest cost that a request may have", "operationId": "reserve",
    "parameters": [
     {
      "name": "Idempotency-Key", "in": "header", "schema": {"type": "string", "pattern": "^[!-~]{1,64}$"},
      "description": "Same as the member `id`. The id of an allowed request is not charged again."}],
    "requestBody": {
     "required": true, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Reserve"}}}},
    "responses": {
     "200": {"$ref": "#/components/responses/Allowed"}, "409": {"$ref": "#/components/responses/Conflict"},
     "429": {"$ref": "#/components/responses/Denied"}, "400": {"$ref": "#/components/responses/Bad"},
     "403": {"$ref": "#/components/responses/OtherSite"},
     "413": {"$ref": "#/components/responses/TooLarge"}, "503": {"$ref": "#/components/responses/Busy"}}}},
  "/v1/commit": {
   "post": {
    "summary": "Commit a reservation with its actual cost", "operationId": "commit",
    "requestBody": {
     "required": true, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Settle"}}}},
    "responses": {
     "200": {
      "description": "The reservation is settled.",
      "headers": {
       "X-RateLimit-Limit": {"$ref": "#/components/headers/X-RateLimit-Limit"},
       "X-RateLimit-Remaining": {"$ref": "#/components/headers/X-RateLimit-Remaining"},
       "X-RateLimit-Reset": {"$ref": "#/components/headers/X-RateLimit-Reset"},
       "RateLimit-Policy": {"$ref": "#/components/headers/RateLimit-Policy"},
       "RateLimit": {"$ref": "#/components/headers/RateLimit"}},
      "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Decision"}}}},
     "404": {"$ref": "#/components/responses/NotFound"}, "400": {"$ref": "#/components/responses/Bad"},
     "403": {"$ref": "#/components/responses/OtherSite"},
     "413": {"$ref": "#/components/responses/TooLarge"}, "503": {"$ref": "#/components/responses/Busy"}}}},
  "/v1/cancel": {
   "post": {
    "summary": "Cancel a reservation and refund it", "operationId": "cancel",
    "requestBody": {
     "required": true, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Settle"}}}},
    "responses": {
     "200": {
      "description": "The reservation is settled.",
      "headers": {
       "X-RateLimit-Limit": {"$ref": "#/components/headers/X-RateLimit-Limit"},
       "X-RateLimit-Remaining": {"$ref": "#/components/headers/X-RateLimit-Remaining"},
       "X-RateLimit-Reset": {"$ref": "#/components/headers/X-RateLimit-Reset"},
       "RateLimit-Policy": {"$ref": "#/components/headers/RateLimit-Policy"},
       "RateLimit": {"$ref": "#/components/headers/RateLimit"}},
      "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Decision"}}}},
     "404": {"$ref": "#/components/responses/NotFound"}, "400": {"$ref": "#/components/responses/Bad"},
     "403": {"$ref": "#/components/responses/OtherSite"},
     "413": {"$ref": "#/components/responses/TooLarge"}, "503": {"$ref": "#/components/responses/Busy"}}}},
  "/v1/acquire": {
   "post": {
    "summary": "Acquire permits until they are released or expire", "operationId": "acquire",
    "requestBody": {
     "required": true, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Acquire"}}}},
    "responses": {
     "200": {"$ref": "#/components/responses/Allowed"}, "429": {"$ref": "#/components/responses/Denied"},
     "400": {"$ref": "#/components/responses/Bad"},
     "403": {"$ref": "#/components/responses/OtherSite"}, "413": {"$ref": "#/components/responses/TooLarge"},
     "503": {"$ref": "#/components/responses/Busy"}}}},
  "/v1/release": {
   "post": {
    "summary": "Release permits", "operationId": "release",
    "requestBody": {
     "required": true, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Release"}}}},
    "responses": {
     "200": {
      "description": "Whether there were permits to release.",
      "content": {
       "application/json": {
        "schema": {"type": "object", "required": ["released"], "properties": {"released": {"type": "boolean"}}}}}},
     "400": {"$ref": "#/components/responses/Bad"},
     "403": {"$ref": "#/components/responses/OtherSite"}, "413": {"$ref": "#/components/responses/TooLarge"},
     "503": {"$ref": "#/components/responses/Busy"}}}},
  "/v1/keys": {
   "delete": {
    "summary": "Reset a key that checks send with their own limit, for every algorithm", "operationId": "resetKey",
    "parameters": [
     {
      "name": "key", "in": "query", "required": true, "schema": {"type": "string", "minLength": 1},
      "description": "the key, at most 4,096 bytes"}],
    "responses": {
     "200": {
      "description": "Whether there was anything to reset.",
      "content": {
       "application/json": {
        "schema": {"type": "object", "required": ["reset"], "properties": {"reset": {"type": "boolean"}}}}}},
     "400": {"$ref": "#/components/responses/Bad"},
     "403": {"$ref": "#/components/responses/OtherSite"}, "503": {"$ref": "#/components/responses/Busy"}}}},
  "/v1/keys/{rule}": {
   "delete": {
    "summary": "Reset what a rule has counted for these attributes", "operationId": "resetRule",
    "description": "Give every attribute that the rule counts by; headers as `header.NAME`, entries as `entry.NAME`.",
    "parameters": [
     {
      "name": "rule", "in": "path", "required": true, "schema": {"type": "string", "minLength": 1, "maxLength": 64}},
     {
      "name": "user", "in": "query", "schema": {"type": "string"},
      "description": "the user, as identified by the caller"},
     {
      "name": "api_key", "in": "query", "schema": {"type": "string"},
      "description": "the API key; counted by its hash"},
     {
      "name": "ip", "in": "query", "schema": {"type": "string"},
      "description": "the peer's address; if it is a trusted proxy, the client's address is read from the headers"},
     {
      "name": "tenant", "in": "query", "schema": {"type": "string"},
      "description": "the tenant that the user belongs to"},
     {"name": "plan", "in": "query", "schema": {"type": "string"}, "description": "the plan, such as free or pro"},
     {"name": "method", "in": "query", "schema": {"type": "string"}, "description": "the HTTP method, such as GET"},
     {"name": "host", "in": "query", "schema": {"type": "string"}, "description": "the host, such as api.example.com"},
     {
      "name": "path", "in": "query", "schema": {"type": "string"},
      "description": "the path with its query, as the client sent it"}],
    "responses": {
     "200": {
      "description": "Whether there was anything to reset.",
      "content": {
       "application/json": {
        "schema": {"type": "object", "required": ["reset"], "properties": {"reset": {"type": "boolean"}}}}}},
     "400": {"$ref": "#/components/responses/Bad"},
     "403": {"$ref": "#/components/responses/OtherSite"}, "404": {"$ref": "#/components/responses/NotFound"},
     "409": {"$ref": "#/components/responses/Lacking"}, "503": {"$ref": "#/components/responses/Busy"}}}},
  "/auth": {
   "parameters": [
    {"$ref": "#/components/parameters/X-Forwarded-Uri"}, {"$ref": "#/components/parameters/X-Forwarded-Method"},
    {"$ref": "#/components/parameters/X-Forwarded-Host"}, {"$ref": "#/components/parameters/X-Forwarded-For"},
    {"$ref": "#/components/parameters/X-API-Key"}],
   "summary": "Check a request that a proxy received (forward-auth); every method is accepted",
   "get": {
    "operationId": "auth_get",
    "responses": {
     "200": {"$ref": "#/components/responses/Passes"}, "4XX": {"$ref": "#/components/responses/DoesNotPass"},
     "503": {"$ref": "#/components/responses/Busy"}}},
   "put": {
    "operationId": "auth_put",
    "responses": {
     "200": {"$ref": "#/components/responses/Passes"}, "4XX": {"$ref": "#/components/responses/DoesNotPass"},
     "503": {"$ref": "#/components/responses/Busy"}}},
   "post": {
    "operationId": "auth_post",
    "responses": {
     "200": {"$ref": "#/components/responses/Passes"}, "4XX": {"$ref": "#/components/responses/DoesNotPass"},
     "503": {"$ref": "#/components/responses/Busy"}}},
   "delete": {
    "operationId": "auth_delete",
    "responses": {
     "200": {"$ref": "#/components/responses/Passes"}, "4XX": {"$ref": "#/components/responses/DoesNotPass"},
     "503": {"$ref": "#/components/responses/Busy"}}},
   "options": {
    "operationId": "auth_options",
    "responses": {
     "200": {"$ref": "#/components/responses/Passes"}, "4XX": {"$ref": "#/components/responses/DoesNotPass"},
     "503": {"$ref": "#/components/responses/Busy"}}},
   "head": {
    "operationId": "auth_head",
    "responses": {
     "200": {"$ref": "#/components/responses/Passes"}, "4XX": {"$ref": "#/components/responses/DoesNotPass"},
     "503": {"$ref": "#/components/responses/Busy"}}},
   "patch": {
    "operationId": "auth_patch",
    "responses": {
     "200": {"$ref": "#/components/responses/Passes"}, "4XX": {"$ref": "#/components/responses/DoesNotPass"},
     "503": {"$ref": "#/components/responses/Busy"}}},
   "trace": {
    "operationId": "auth_trace",
    "responses": {
     "200": {"$ref": "#/components/responses/Passes"}, "4XX": {"$ref": "#/components/responses/DoesNotPass"},
     "503": {"$ref": "#/components/responses/Busy"}}}},
  "/auth/{path}": {
   "parameters": [
    {"name": "path", "in": "path", "required": true, "schema": {"type": "string", "minLength": 1}},
    {"$ref": "#/components/parameters/X-Forwarded-Uri"}, {"$ref": "#/components/parameters/X-Forwarded-Method"},
    {"$ref": "#/components/parameters/X-Forwarded-Host"}, {"$ref": "#/components/parameters/X-Forwarded-For"},
    {"$ref": "#/components/parameters/X-API-Key"}],
   "summary": "Check a request that a proxy received (forward-auth); every method is accepted",
   "get": {
    "operationId": "auth_get_below",
    "responses": {
     "200": {"$ref": "#/components/responses/Passes"}, "4XX": {"$ref": "#/components/responses/DoesNotPass"},
     "503": {"$ref": "#/components/responses/Busy"}}},
   "post": {
    "operationId": "auth_post_below",
    "responses": {
     "200": {"$ref": "#/components/responses/Passes"}, "4XX": {"$ref": "#/components/responses/DoesNotPass"},
     "503": {"$ref": "#/components/responses/Busy"}}}},
  "/": {
   "get": {
    "summary": "How to use this API", "operationId": "welcome",
    "responses": {
     "200": {"description": "A page of text.", "content": {"text/plain": {"schema": {"type": "string"}}}}}}},
  "/livez": {
   "get": {
    "summary": "Whether the server is up", "operationId": "livez",
    "responses": {"200": {"description": "`ok`", "content": {"text/plain": {"schema": {"type": "string"}}}}}}},
  "/readyz": {
   "get": {
    "summary": "Whether the server is ready for requests", "operationId": "readyz",
    "responses": {
     "200": {"description": "`ok`", "content": {"text/plain": {"schema": {"type": "string"}}}},
     "503": {"description": "The server is stopping.", "content": {"text/plain": {"schema": {"type": "string"}}}}}}},
  "/json": {
   "post": {
    "summary": "Envoy's rate limit service in protobuf's JSON", "operationId": "rls",
    "requestBody": {
     "required": true, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/RlsRequest"}}}},
    "responses": {
     "200": {
      "description": "The request is allowed.",
      "content": {"application/json": {"schema": {"$ref": "#/components/schemas/RlsResponse"}}}},
     "429": {
      "description": "The request is denied.",
      "content": {"application/json": {"schema": {"$ref": "#/components/schemas/RlsResponse"}}}},
     "400": {
      "description": "The request is invalid; the body says why.",
      "content": {
       "text/plain": {"schema": {"type": "string"}},
       "application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}},
     "403": {"$ref": "#/components/responses/OtherSite"}, "413": {"$ref": "#/components/responses/TooLarge"}}}},
  "/healthcheck": {
   "get": {
    "summary": "Whether the server is up, as in Envoy's rate limit service", "operationId": "healthcheck",
    "responses": {"200": {"description": "`OK`", "content": {"text/plain": {"schema": {"type": "string"}}}}}}},
  "/openapi.json": {
   "get": {
    "summary": "This document", "operationId": "openapi",
    "responses": {
     "200": {"description": "OpenAPI 3.1", "content": {"application/json": {"schema": {"type": "object"}}}}}}}},
 "components": {
  "schemas": {
   "Id": {"type": "string", "minLength": 1, "maxLength": 64},
   "Key": {"type": "string", "minLength": 1, "maxLength": 4096, "description": "the key to count under"},
   "Rate": {
    "type": "string", "pattern": "^(0|[1-9][0-9]{0,5})/([1-9][0-9]{0,2})?(ms|s|min|h|day)$",
    "examples": ["100/min", "5/10s"]},
   "Burst": {
    "type": "string", "pattern": "^[1-9][0-9]{0,3}/(s|min|h|day) burst [1-9][0-9]{0,3}$",
    "examples": ["10/s burst 50"]},
   "Calendar": {
    "type": "string", "pattern": "^(0|[1-9][0-9]{0,5})/calendar_(day|week|month|year)( UTC)?$",
    "examples": ["1000/calendar_month UTC"]},
   "InFlight": {
    "type": "string", "pattern": "^(0|[1-9][0-9]{0,2}) concurrent( for [1-9][0-9]{0,2}(s|min))?$",
    "examples": ["20 concurrent", "20 concurrent for 5min"]},
   "Cost": {
    "type": "integer", "minimum": -9007199254740992, "maximum": 9007199254740992, "default": 1,
    "description": "permits; 0 charges nothing, a negative cost refunds"},
   "NonNegativeCost": {
    "type": "integer", "minimum": 0, "maximum": 1099511627776, "default": 1, "description": "permits"},
   "User": {"type": "string", "description": "the user, as identified by the caller"},
   "Api_key": {"type": "string", "description": "the API key; counted by its hash"},
   "Ip": {
    "type": "string",
    "description": "the peer's address; if it is a trusted proxy, the client's address is read from the headers",
    "anyOf": [{"format": "ipv4"}, {"format": "ipv6"}, {"maxLength": 0}]},
   "Tenant": {"type": "string", "description": "the tenant that the user belongs to"},
   "Plan": {"type": "string", "description": "the plan, such as free or pro"},
   "Method": {"type": "string", "description": "the HTTP method, such as GET"},
   "Host": {"type": "string", "description": "the host, such as api.example.com"},
   "Path": {"type": "string", "description": "the path with its query, as the client sent it", "maxLength": 8192},
   "Headers": {
    "type": "object", "maxProperties": 256, "additionalProperties": {"type": "string"},
    "description": "header fields of the request, by name"},
   "Entries": {
    "type": "object", "maxProperties": 256, "additionalProperties": {"type": "string"},
    "description": "other attributes that rules use, by name"},
   "Check": {
    "description": "Either a key with its own limit, or the attributes of a request for the rules to decide.",
    "anyOf": [@Cost@]},
   "Checks": {
    "anyOf": [
     {
      "type": "object", "required": ["checks"], "additionalProperties": false,
      "properties": {"checks": {"$ref": "#/components/schemas/CheckItems"}}},
     {"$ref": "#/components/schemas/CheckItems"}]},
   "CheckItems": {
    "type": "array",
    "description": "At most 10,000 checks, each like the body of /v1/check. An invalid check gets an error."},
   "Reserve": {
    "description": "The largest cost that the request may have. Without an `id`, the server generates one.",
    "anyOf": [@NonNegativeCost@]},
   "Settle": {
    "description": "The `id` of the reservation, the same key and limit or the same attributes, and the actual cost.",
    "anyOf": [@NonNegativeCost with id@]},
   "Acquire": {
    "type": "object", "required": ["key", "limit"], "additionalProperties": false,
    "properties": {
     "key": {"$ref": "#/components/schemas/Key"}, "limit": {"$ref": "#/components/schemas/InFlight"},
     "cost": {"type": "integer", "minimum": 1, "maximum": 10000, "default": 1, "description": "permits"},
     "id": {"$ref": "#/components/schemas/Id"}}},
   "Release": {
    "type": "object", "required": ["key", "id"], "additionalProperties": false,
    "properties": {"key": {"$ref": "#/components/schemas/Key"}, "id": {"$ref": "#/components/schemas/Id"}}},
   "RuleLimit": {
    "type": "object",
    "required": ["rule", "limit_text", "allowed", "limit", "remaining", "reset_after", "retry_after", "delay"],
    "properties": {
     "rule": {"type": "string"},
     "limit_text": {"type": "string", "description": "the limit, as written"},
     "allowed": {"type": "boolean"},
     "limit": {
      "type": "integer", "minimum": 0, "description": "the capacity of a bucket, else the permits of a period"},
     "remaining": {"type": "integer", "minimum": 0, "description": "the largest cost that would be allowed now"},
     "reset_after": {
      "type": "number", "minimum": 0, "description": "seconds until all permits are available again, without traffic"},
     "retry_after": {
      "type": ["number", "null"], "minimum": 0, "description": "seconds; 0 if allowed, null if it never can be"},
     "delay": {
      "type": "number", "minimum": 0, "description": "seconds to wait before the request proceeds (leaky_bucket)"},
     "decided_by": {"type": "string", "enum": ["strict", "cached", "local", "open", "closed", "overloaded", "no_room"],
              "description": "strict: by Redis; cached: a cached denial; no_room: full table; others: without Redis"}}},
   "Decision": {
    "type": "object", "required": ["allowed"],
    "description": "Numbers are those of the binding limit, if any. Decisions by rules add `rule` to `limits`.",
    "properties": {
     "allowed": {"type": "boolean"},
     "limit": {
      "type": "integer", "minimum": 0, "description": "the capacity of a bucket, else the permits of a period"},
     "remaining": {"type": "integer", "minimum": 0, "description": "the largest cost that would be allowed now"},
     "reset_after": {
      "type": "number", "minimum": 0, "description": "seconds until all permits are available again, without traffic"},
     "retry_after": {
      "type": ["number", "null"], "minimum": 0, "description": "seconds; 0 if allowed, null if it never can be"},
     "delay": {
      "type": "number", "minimum": 0, "description": "seconds to wait before the request proceeds (leaky_bucket)"},
     "decided_by": {"type": "string", "enum": ["strict", "cached", "local", "open", "closed", "overloaded", "no_room"],
              "description": "strict: by Redis; cached: a cached denial; no_room: full table; others: without Redis"},
     "rule": {"type": "string"},
     "limit_text": {"type": "string", "description": "the binding limit, as written"},
     "reason": {"enum": ["within", "no_rule", "skipped", "exempt", "limited", "missing", "ambiguous_path", "overload"]},
     "limits": {
      "type": "array", "items": {"$ref": "#/components/schemas/RuleLimit"},
      "description": "every limit that applied, in order; in a denial, by default, only the limit that denied"},
     "reservation": {"$ref": "#/components/schemas/Id"}, "id": {"$ref": "#/components/schemas/Id"}}},
   "Problem": {
    "type": "object", "required": ["type", "title", "status", "detail"], "description": "RFC 9457",
    "properties": {
     "type": {"type": "string"}, "title": {"type": "string"}, "status": {"type": "integer"},
     "detail": {"type": "string"}}},
   "Denial": {
    "allOf": [
     {"$ref": "#/components/schemas/Problem"}, {"$ref": "#/components/schemas/Decision"},
     {
      "type": "object", "required": ["error", "message"],
      "properties": {
       "error": {"const": "Rate limit exceeded"},
       "message": {"type": "string", "examples": ["Try again in 12 seconds"]},
       "violated-policies": {"type": "array", "items": {"type": "string"}}}}]},
   "RlsRequest": {
    "type": "object", "required": ["domain", "descriptors"], "additionalProperties": false,
    "description": "envoy.service.ratelimit.v3.RateLimitRequest",
    "properties": {
     "domain": {"type": "string", "minLength": 1},
     "descriptors": {
      "type": "array", "minItems": 1, "maxItems": 64,
      "items": {
       "type": "object", "additionalProperties": false,
       "properties": {
        "entries": {
         "type": ["array", "null"], "maxItems": 64,
         "items": {
          "type": "object", "additionalProperties": false,
          "properties": {"key": {"type": ["string", "null"]}, "value": {"type": ["string", "null"]}}}}}}}}},
   "RlsResponse": {
    "type": "object", "required": ["overallCode"],
    "properties": {"overallCode": {"enum": ["OK", "OVER_LIMIT"]}, "statuses": {"type": "array"}}},
   "Answers": {
    "type": "object", "required": ["answers"],
    "properties": {
     "answers": {
      "type": "array",
      "items": {
       "anyOf": [
        {"$ref": "#/components/schemas/Decision"},
        {
         "type": "object", "required": ["error", "detail"],
         "properties": {"error": {"type": "string"}, "detail": {"type": "string"}}}]}}}}},
  "headers": {
   "X-RateLimit-Limit": {"schema": {"type": "integer"}}, "X-RateLimit-Remaining": {"schema": {"type": "integer"}},
   "X-RateLimit-Reset": {"description": "a Unix time in seconds", "schema": {"type": "integer"}},
   "RateLimit-Policy": {
    "description": "draft-ietf-httpapi-ratelimit-headers: every limit",
    "schema": {"type": "string", "examples": ["\"login: 5/5min\";q=5;w=300"]}},
   "RateLimit": {
    "description": "the binding limit",
    "schema": {"type": "string", "examples": ["\"login: 5/5min\";r=4;t=300"]}},
   "Retry-After": {
    "description": "seconds, rounded up, at least 1; absent if the request can never be allowed",
    "schema": {"type": "integer", "minimum": 1}},
   "X-Weir-Status": {
    "description": "200 if allowed, 429 if denied, whatever status the config sets for denials",
    "schema": {"type": "integer", "enum": [200, 429]}},
   "X-Weir-Decided-By": {
    "description": "strict: by Redis; cached: a cached denial; no_room: full table; others: without Redis",
    "schema": {"type": "string", "enum": ["strict", "cached", "local", "open", "closed", "overloaded", "no_room"]}}},
  "responses": {
   "Allowed": {
    "description": "The request is allowed and charged.",
    "headers": {
     "X-RateLimit-Limit": {"$ref": "#/components/headers/X-RateLimit-Limit"},
     "X-RateLimit-Remaining": {"$ref": "#/components/headers/X-RateLimit-Remaining"},
     "X-RateLimit-Reset": {"$ref": "#/components/headers/X-RateLimit-Reset"},
     "RateLimit-Policy": {"$ref": "#/components/headers/RateLimit-Policy"},
     "RateLimit": {"$ref": "#/components/headers/RateLimit"}},
    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Decision"}}}},
   "Denied": {
    "description": "The request is denied. Nothing is charged.",
    "headers": {
     "X-RateLimit-Limit": {"$ref": "#/components/headers/X-RateLimit-Limit"},
     "X-RateLimit-Remaining": {"$ref": "#/components/headers/X-RateLimit-Remaining"},
     "X-RateLimit-Reset": {"$ref": "#/components/headers/X-RateLimit-Reset"},
     "RateLimit-Policy": {"$ref": "#/components/headers/RateLimit-Policy"},
     "RateLimit": {"$ref": "#/components/headers/RateLimit"},
     "Retry-After": {"$ref": "#/components/headers/Retry-After"}},
    "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Denial"}}}},
   "Bad": {
    "description": "The request is invalid; `detail` says why. Nothing is charged.",
    "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}},
   "OtherSite": {
    "description": "A web page sent the request, and `--allow-origin` does not allow its origin. Nothing is charged.",
    "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}},
   "Lacking": {
    "description": "The request lacks an attribute that the rule counts by.",
    "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}},
   "Conflict": {
    "description": "`Idempotency-Key` and `id` differ, or a reservation with this id is already open.",
    "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}},
   "NotFound": {
    "description": "The reservation or rule does not exist, or no longer exists.",
    "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}},
   "TooLarge": {
    "description": "The body has more than 1 MiB (4 MiB for /v1/checks) or more than 10,000 checks.",
    "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}},
   "Busy": {
    "description": "The server is overloaded or out of capacity, or something that the request needs is unavailable.",
    "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
    "headers": {"Retry-After": {"$ref": "#/components/headers/Retry-After"}}},
   "Passes": {
    "description": "The request is allowed; the body is empty. For a leaky_bucket, the answer may be delayed.",
    "headers": {
     "X-RateLimit-Limit": {"$ref": "#/components/headers/X-RateLimit-Limit"},
     "X-RateLimit-Remaining": {"$ref": "#/components/headers/X-RateLimit-Remaining"},
     "X-RateLimit-Reset": {"$ref": "#/components/headers/X-RateLimit-Reset"},
     "RateLimit-Policy": {"$ref": "#/components/headers/RateLimit-Policy"},
     "RateLimit": {"$ref": "#/components/headers/RateLimit"},
     "X-Weir-Status": {"$ref": "#/components/headers/X-Weir-Status"},
     "X-Weir-Decided-By": {"$ref": "#/components/headers/X-Weir-Decided-By"}}},
   "DoesNotPass": {
    "description": "The request is denied (429, or the status in the config), or two header fields conflict (400).",
    "headers": {
     "X-RateLimit-Limit": {"$ref": "#/components/headers/X-RateLimit-Limit"},
     "X-RateLimit-Remaining": {"$ref": "#/components/headers/X-RateLimit-Remaining"},
     "X-RateLimit-Reset": {"$ref": "#/components/headers/X-RateLimit-Reset"},
     "RateLimit-Policy": {"$ref": "#/components/headers/RateLimit-Policy"},
     "RateLimit": {"$ref": "#/components/headers/RateLimit"},
     "Retry-After": {"$ref": "#/components/headers/Retry-After"},
     "X-Weir-Status": {"$ref": "#/components/headers/X-Weir-Status"},
     "X-Weir-Decided-By": {"$ref": "#/components/headers/X-Weir-Decided-By"}},
    "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}}},
  "parameters": {
   "X-Forwarded-Uri": {
    "name": "X-Forwarded-Uri", "in": "header", "schema": {"type": "string"},
    "description": "path and query of the original request; also accepted: X-Original-URI, X-Original-URL"},
   "X-Forwarded-Method": {
    "name": "X-Forwarded-Method", "in": "header", "schema": {"type": "string"},
    "description": "method of the original request; also accepted: X-Original-Method"},
   "X-Forwarded-Host": {
    "name": "X-Forwarded-Host", "in": "header", "schema": {"type": "string"},
    "description": "host of the original request; default: Host"},
   "X-Forwarded-For": {
    "name": "X-Forwarded-For", "in": "header", "schema": {"type": "string"},
    "description": "addresses of client and proxies; used only if the config trusts the peer"},
   "X-API-Key": {
    "name": "X-API-Key", "in": "header", "schema": {"type": "string"},
    "description": "the request's api_key. Clients can invent keys, and each counts separately: add a rule per ip."}}}}
)json";

void fill_in(std::string& text, std::string_view mark, std::string_view with) {
  for (std::size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + with.size())) {
    text.replace(at, mark.size(), with);
  }
}

enum class Id : bool { may_be, must_be };

std::string kinds_of(std::string_view cost, Id id) {
  std::string text(kKinds);
  fill_in(text, "@cost@", cost);
  fill_in(text, "@only id@", id == Id::must_be ? "\"id\"" : "");
  fill_in(text, "@id@", id == Id::must_be ? ", \"id\"" : "");
  return text;
}

std::string put_together() {
  std::string text(kDocument);
  fill_in(text, "@Cost@", kinds_of("Cost", Id::may_be));
  fill_in(text, "@NonNegativeCost@", kinds_of("NonNegativeCost", Id::may_be));
  fill_in(text, "@NonNegativeCost with id@", kinds_of("NonNegativeCost", Id::must_be));
  return text;
}

}  // namespace

std::string_view openapi_document() {
  static const std::string kText = put_together();
  return kText;
}

}  // namespace weir
