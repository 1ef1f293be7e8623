-- The action `lua.weir` of haproxy.cfg: checks with Weir whether a request may pass.
--
-- The client gets a denial as Weir wrote it: 429, Retry-After, RateLimit and its body. It gets any other 4xx
-- answer as well: a request that Weir cannot take (431, for a long URL) must not pass because of that. If the request
-- passes, Weir's headers are stored in variables for http-after-response. Weir counts as down if it answers 5xx or
-- nothing. haproxy.cfg has its address, and says what to do when it is down.
local url = os.getenv("WEIR_URL")
local when_down = os.getenv("WEIR_DOWN")

-- Each header of Weir's answer, and the variable that stores it.
local passed_on = {
    ["x-ratelimit-limit"] = "txn.weir_limit",
    ["x-ratelimit-remaining"] = "txn.weir_remaining",
    ["x-ratelimit-reset"] = "txn.weir_reset",
    ["ratelimit"] = "txn.weir_ratelimit",
    ["ratelimit-policy"] = "txn.weir_policy",
}

local function check(txn)
    local headers = {
        ["x-forwarded-for"] = { txn.f:src() },          -- never the client's own X-Forwarded-For
        ["x-forwarded-method"] = { txn.f:method() },
        ["x-forwarded-uri"] = { txn.f:url() },
        ["x-forwarded-host"] = { txn.f:req_hdr("host") or "" },
    }
    -- If your rules use other headers, name them here.
    for _, name in ipairs({ "authorization", "x-api-key" }) do
        local value = txn.f:req_hdr(name)
        if value then headers[name] = { value } end
    end
    return core.httpclient():get({ url = url, headers = headers })
end

local function refuse(txn, status, answer)
    local reply = txn:reply()
    reply:set_status(status)
    for name, values in pairs(answer.headers or {}) do
        if passed_on[name] or name == "retry-after" or name == "content-type" then
            reply:add_header(name, values[0])
        end
    end
    reply:set_body(answer.body or "")
    txn:done(reply)
end

core.register_action("weir", { "http-req" }, function(txn)
    local sent, answer = pcall(check, txn)
    local status = sent and answer and answer.status or 0
    if status == 200 then
        for name, variable in pairs(passed_on) do
            local values = answer.headers[name]
            if values then txn:set_var(variable, values[0]) end
        end
    elseif status > 0 and status < 500 then
        refuse(txn, status, answer)
    elseif when_down == "closed" then
        refuse(txn, 503, {})
    end
end)
